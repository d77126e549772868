/**
 * Finds the issuer of a relay's certificate: a board has no store of authorities and is given this
 * one.
 */
import { isIP } from "node:net";
import { connect, type DetailedPeerCertificate, type TLSSocket } from "node:tls";
import { Failure } from "../failure.ts";
import { networkFix, plainReason } from "../network-fix.ts";

const TIMEOUT_MS = 10_000;
/** The version that Moddable's TLS supports. */
const VERSION = "TLSv1.2";

/**
 * The certificate of the authority at the end of the chain that makes this machine trust the relay,
 * in DER as base64. `url`: https:// or wss://. Fails if the relay cannot be reached or is not
 * trusted.
 */
export const authorityOf = (url: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const host = hostname.replace(/^\[|\]$/g, "");
    const named = isIP(host) === 0 ? { servername: host } : {};
    const to = {
      host,
      port: Number(port || 443),
      minVersion: VERSION,
      maxVersion: VERSION,
    } as const;
    const socket = connect({ ...to, ...named }, () => {
      resolve(rootOf(socket).raw.toString("base64"));
      socket.destroy();
    });
    const timedOut = new Error(`no TLS handshake in ${TIMEOUT_MS / 1000} s`);
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(timedOut));
    socket.on("error", ({ message }) => {
      const why = plainReason(message);
      const what = `the relay's certificate authority cannot be found: ${url}: ${why}`;
      reject(new Failure("unreachable", what + networkFix(message)));
    });
  });

const rootOf = (socket: TLSSocket): DetailedPeerCertificate => {
  let certificate = socket.getPeerCertificate(true);
  for (;;) {
    const issuer: DetailedPeerCertificate | undefined = certificate.issuerCertificate;
    if (issuer === undefined || issuer === certificate) return certificate;
    certificate = issuer;
  }
};
