/**
 * TLS from two files, reloaded while the relay runs: on SIGHUP, or when a file changes. Open links
 * keep the certificate with which they were made.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync, unwatchFile, watchFile } from "node:fs";
import type { RequestListener } from "node:http";
import { createServer, type Server } from "node:https";
import type { Logger } from "pino";
import { contained } from "../contain.ts";
import { Failure, messageOf } from "../failure.ts";

/** How often the files are checked. Renewals happen weeks before the old certificate expires. */
const LOOK_MS = 2000;
/** Two weeks: clients that renew by themselves do so a month before the end. */
const SOON_MS = 14 * 86_400_000;

interface TlsFiles {
  /** PEM: the certificate, followed by the intermediate ones. */
  readonly cert: string;
  /** PEM, not encrypted. */
  readonly key: string;
}

export interface Tls {
  /** An https server with the current certificate; it gets later ones too. */
  serve(listener: RequestListener): Server;
  /** Reads the files again; if they do not match, logs that and keeps the old ones. */
  reload(): void;
  /** When the current certificate ends, in milliseconds of Unix time. */
  endMs(): number;
  /** Logs a certificate that has ended, or ends soon. */
  look(): void;
  stop(): void;
}

/** Reads the files and watches them. Throws a Failure with the reason if they are unusable. */
export const openTls = (
  files: TlsFiles,
  log: Pick<Logger, "info" | "warn" | "error">,
  nowMs: () => number,
): Tls => {
  let pair = readPair(files);
  const endMs = () => Date.parse(new X509Certificate(pair.cert).validTo);
  const look = () => {
    const leftMs = endMs() - nowMs();
    if (leftMs > SOON_MS) return;
    const valid_to = new Date(endMs()).toISOString();
    if (leftMs > 0) log.warn({ valid_to }, "the certificate ends soon: renew it");
    else log.error({ valid_to }, "the certificate has expired: peers that check it stay away");
  };
  look();
  const servers: Server[] = [];
  const reload = () => {
    try {
      const next = readPair(files);
      if (next.cert === pair.cert && next.key === pair.key) return;
      pair = next;
      for (const server of servers) server.setSecureContext(pair);
      log.info({ valid_to: new X509Certificate(pair.cert).validTo }, "using the new certificate");
      look();
    } catch (error) {
      log.error({ err: error }, "kept the old certificate: cannot use the new one");
    }
  };
  const onChange = contained("timer", "the certificate's files were not read", reload);
  for (const path of [files.cert, files.key]) watchFile(path, { interval: LOOK_MS }, onChange);
  return {
    serve: (listener) => {
      const server = createServer(pair, listener);
      servers.push(server);
      return server;
    },
    reload,
    endMs,
    look,
    stop: () => {
      for (const path of [files.cert, files.key]) unwatchFile(path, onChange);
    },
  };
};

const readPair = (files: TlsFiles): { cert: string; key: string } => {
  const cert = read("--tls-cert", files.cert);
  const key = read("--tls-key", files.key);
  const fits = attempt("--tls-cert", files.cert, () => new X509Certificate(cert)).checkPrivateKey(
    attempt("--tls-key", files.key, () => createPrivateKey(key)),
  );
  if (fits) return { cert, key };
  throw new Failure(
    "usage",
    `--tls-key is not the key of --tls-cert: give two that belong together`,
  );
};

const read = (flag: string, path: string): string =>
  attempt(flag, path, () => readFileSync(path, "utf8"));

const attempt = <T>(flag: string, path: string, work: () => T): T => {
  try {
    return work();
  } catch (error) {
    const cause = messageOf(error);
    throw new Failure("usage", `cannot use ${path} (${flag}): ${cause}; give a PEM file`, error);
  }
};
