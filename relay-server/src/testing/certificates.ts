/** For tests: an authority, and certificates for 127.0.0.1 and for a client, made by openssl. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** Whether there is no `openssl`. */
export const noOpenssl = (() => {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return false;
  } catch {
    return true;
  }
})();

export interface Certificates {
  readonly ca: string;
  /** Of the server; its name is 127.0.0.1. */
  readonly cert: string;
  readonly key: string;
  readonly clientCert: string;
  readonly clientKey: string;
}

/** Makes them in the folder. `client`: the client's name. */
export const makeCertificates = (folder: string, client: string): Certificates => {
  const path = (name: string) => join(folder, name);
  const openssl = (...args: string[]) => execFileSync("openssl", args, { stdio: "ignore" });
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  openssl(
    ...["req", "-x509", ...newKey, "-days", "2", "-subj", "/CN=test authority"],
    ...["-keyout", path("ca.key"), "-out", path("ca.pem")],
  );
  const issue = (name: string, subject: string, alternative: string) => {
    const [key, request, cert] = [path(`${name}.key`), path(`${name}.csr`), path(`${name}.pem`)];
    openssl("req", ...newKey, "-subj", `/CN=${subject}`, "-keyout", key, "-out", request);
    writeFileSync(path("names"), `subjectAltName=${alternative}`);
    openssl(
      ...["x509", "-req", "-in", request, "-out", cert, "-days", "2", "-extfile", path("names")],
      ...["-CA", path("ca.pem"), "-CAkey", path("ca.key"), "-CAcreateserial"],
    );
    return { cert, key };
  };
  const server = issue("server", "127.0.0.1", "IP:127.0.0.1");
  const { cert: clientCert, key: clientKey } = issue("client", client, `DNS:${client}`);
  return { ca: path("ca.pem"), ...server, clientCert, clientKey };
};
