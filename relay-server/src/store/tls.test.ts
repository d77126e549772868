/** A PostgreSQL that accepts only TLS, and only clients with a certificate. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeCertificates, noOpenssl } from "../testing/certificates.ts";
import { noPostgresPrograms, ownPostgres } from "../testing/own-postgres.ts";
import { openStore } from "./open.ts";

test.skipIf(noOpenssl || noPostgresPrograms)(
  "the store is opened over TLS with the files named in its address, and not without them",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "blindrelay-store-tls-"));
    const made = makeCertificates(folder, "postgres");
    const server = await ownPostgres(folder, made);
    const address = (parameters: Record<string, string>) => {
      const url = new URL(server.url);
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
      return { engine: "postgres", url: String(url) } as const;
    };
    const own = { sslcert: made.clientCert, sslkey: made.clientKey };
    try {
      const warned: string[] = [];
      const warn = (warning: Error) => warned.push(warning.message);
      process.on("warning", warn);
      const verified = { sslmode: "verify-full", sslrootcert: made.ca, ...own };
      const store = await openStore(address(verified), true);
      await expect.poll(() => store.isReady()).toBe(true);
      await store.close();
      await expect(openStore(address({ sslmode: "disable" }), true)).rejects.toThrow();
      const stranger = { sslmode: "verify-full", ...own };
      await expect(openStore(address(stranger), true)).rejects.toThrow();
      // brianc/node-postgres#2375, as providers print it
      await expect(openStore(address({ sslmode: "require" }), true)).rejects.toThrow(
        /certificate.*name its authority with &sslrootcert=FILE/,
      );
      const required = { ...verified, sslmode: "require" };
      await (await openStore(address(required), true)).close();
      process.off("warning", warn);
      expect(warned).toEqual([]);
      const anonymous = { sslmode: "verify-full", sslrootcert: made.ca };
      await expect(openStore(address(anonymous), true)).rejects.toThrow();
    } finally {
      await server.stop("immediate");
      rmSync(folder, { recursive: true });
    }
  },
);
