/** For tests: a private PostgreSQL that can be stopped, started and frozen. */
import { execFile, execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { freePort } from "../bus/testing/free-port.ts";

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;
/** PostgreSQL does not run as root. */
const asPostgres = (command: string, args: string[]): Promise<unknown> =>
  isRoot ? run("runuser", ["-u", "postgres", "--", command, ...args]) : run(command, args);

/** Debian's place; of the newest version. */
const VERSIONS = "/usr/lib/postgresql";
const [newest = 0] = (existsSync(VERSIONS) ? readdirSync(VERSIONS) : [])
  .map(Number)
  .sort((a, b) => b - a);
const binaries = join(VERSIONS, String(newest), "bin");

const MAX_TRIES = 5;

/** Whether PostgreSQL's programs are not here. */
export const noPostgresPrograms = !existsSync(join(binaries, "initdb"));

export interface OwnPostgres {
  /** Of its empty database; no password. */
  readonly url: string;
  start(): Promise<void>;
  stop(how: "fast" | "immediate"): Promise<void>;
  /** All its processes. */
  signal(name: "SIGSTOP" | "SIGCONT"): void;
  // biome-ignore lint/suspicious/noExplicitAny: rows of any query
  query(text: string): Promise<any[]>;
}

interface PostgresTls {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/**
 * Starts one in the folder. With `tls` it demands TLS, and a certificate of anyone who connects.
 */
export const ownPostgres = async (folder: string, tls?: PostgresTls): Promise<OwnPostgres> => {
  const cluster = join(folder, "postgres");
  if (isRoot) execFileSync("chown", ["postgres", folder]);
  await asPostgres(join(binaries, "initdb"), ["-D", cluster, "-A", "trust", "-U", "postgres"]);
  if (tls !== undefined) demandTls(cluster, tls);
  const control = (...args: string[]) => {
    const log = ["-l", join(cluster, "log")];
    return asPostgres(join(binaries, "pg_ctl"), ["-D", cluster, "-w", ...log, ...args]);
  };
  let port = await freePort();
  // Its files need not survive the machine.
  const start = async () => {
    await control("-o", `-h 127.0.0.1 -p ${port} -k ${cluster} -F`, "start");
  };
  const processes = (): number[] => {
    const [postmaster = ""] = readFileSync(join(cluster, "postmaster.pid"), "utf8").split("\n");
    const children = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, "utf8");
    return [postmaster, ...children.trim().split(" ")].filter((id) => id !== "").map(Number);
  };
  for (let tries = 1; ; tries += 1) {
    try {
      await start();
      break;
    } catch (error) {
      if (tries === MAX_TRIES) throw error;
      port = await freePort(); // somebody else has taken the one before
    }
  }
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  return {
    url,
    start,
    stop: async (how) => {
      await control("-m", how, "stop");
    },
    signal: (name) => {
      for (const pid of processes()) {
        try {
          process.kill(pid, name);
        } catch {
          // a backend that has ended meanwhile
        }
      }
    },
    query: async (text) => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      const { rows } = await client.query(text);
      await client.end();
      return rows;
    },
  };
};

const demandTls = (cluster: string, { ca, cert, key }: PostgresTls): void => {
  for (const [from, name] of [
    [ca, "ca.pem"],
    [cert, "server.pem"],
    [key, "server.key"],
  ] as const) {
    copyFileSync(from, join(cluster, name));
    chmodSync(join(cluster, name), 0o600);
    if (isRoot) execFileSync("chown", ["postgres", join(cluster, name)]);
  }
  const settings = ["ssl = on", "ssl_ca_file = 'ca.pem'", "ssl_cert_file = 'server.pem'"];
  appendFileSync(
    join(cluster, "postgresql.conf"),
    `${[...settings, "ssl_key_file = 'server.key'"].join("\n")}\n`,
  );
  const only = "hostssl all all 127.0.0.1/32 cert\n";
  execFileSync("tee", [join(cluster, "pg_hba.conf")], {
    input: only,
    stdio: ["pipe", "ignore", "inherit"],
  });
};
