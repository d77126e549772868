/**
 * Finds the issuer of a relay's certificate: a board has no store of authorities and is given this
 * one.
 */
import { isIP } from "node:net";
import {
  type ConnectionOptions,
  connect,
  type DetailedPeerCertificate,
  type TLSSocket,
} from "node:tls";
import { Failure } from "@blindrelay/protocol/command-line";
import { reasonOfError } from "@blindrelay/protocol/net";
import { openTunnel, proxyFor } from "@blindrelay/protocol/net/node";

const TIMEOUT_MS = 10_000;
/** The version that Moddable's TLS supports. */
const VERSION = "TLSv1.2";

const rootOf = (socket: TLSSocket): DetailedPeerCertificate => {
  let certificate = socket.getPeerCertificate(true);
  for (;;) {
    const issuer: DetailedPeerCertificate | undefined = certificate.issuerCertificate;
    if (issuer === undefined || issuer === certificate) return certificate;
    certificate = issuer;
  }
};

const rootAt = (to: ConnectionOptions): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(to, () => {
      resolve(rootOf(socket).raw.toString("base64"));
      socket.destroy();
    });
    const timedOut = new Error(`no TLS handshake in ${TIMEOUT_MS / 1000} s`);
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(timedOut));
    socket.on("error", reject);
  });

/**
 * The certificate of the authority at the end of the chain that makes this machine trust the relay,
 * in DER as base64. `url`: https:// or wss://. Fails if the relay cannot be reached or is not
 * trusted.
 */
export const authorityOf = async (url: string): Promise<string> => {
  const to = new URL(url);
  const host = to.hostname.replace(/^\[|\]$/g, "");
  const port = Number(to.port || 443);
  try {
    const proxy = proxyFor(to, undefined);
    const way = proxy === null ? {} : { socket: await openTunnel(proxy, host, port) };
    const named = isIP(host) === 0 ? { servername: host } : {};
    return await rootAt({ host, port, minVersion: VERSION, maxVersion: VERSION, ...named, ...way });
  } catch (error) {
    const why = reasonOfError(error).text;
    const what = `the relay's certificate authority cannot be found: ${url}: ${why}`;
    throw new Failure("unreachable", what);
  }
};
