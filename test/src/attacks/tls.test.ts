/** What a peer or an operator can do to TLS while others use it. */

import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import { makeCertificates, noOpenssl } from "@blindrelay/relay-server/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { holdsWithin, metric } from "../overload/edge/conversation.ts";
import { rawSocket } from "../overload/raw-socket.ts";
import { type RelayProcess, startRelayProcess } from "../overload/relay-process.ts";
import { RoundTrips } from "../overload/round-trips.ts";

describe.skipIf(noOpenssl)("a relay with a certificate", () => {
  let relay: RelayProcess;
  let neighbour: RoundTrips;
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-attacks-tls-"));
  beforeAll(async () => {
    relay = await startRelayProcess(["--log-level", "info"], { tls: true });
    neighbour = await RoundTrips.open(relay, relay.account);
  });
  afterAll(async () => {
    neighbour.close();
    await relay.stop();
    rmSync(folder, { recursive: true });
  });

  const expectWell = async (): Promise<void> => {
    await neighbour.once();
    expect([neighbour.lost, neighbour.wrong, relay.isAlive()]).toEqual([0, 0, true]);
    expect(await metric(relay, "faults_total")).toBe(0);
  };

  const handshake = async (options: object = {}): Promise<TLSSocket> => {
    const at = { port: relay.port, host: "127.0.0.1", rejectUnauthorized: false };
    const socket = connect({ ...at, ...options });
    await Promise.race([once(socket, "secureConnect"), once(socket, "close")]);
    return socket.on("error", () => undefined);
  };

  test("300 SIGHUPs with pairs that are whole, mixed and no PEM, and peers all the while", async () => {
    const [cert, key] = [join(relay.data, "server.pem"), join(relay.data, "server.key")];
    const other = makeCertificates(folder, "nobody");
    const pairs = [{ cert, key }, other].map((pair) => ({
      cert: readFileSync(pair.cert),
      key: readFileSync(pair.key),
      print: new X509Certificate(readFileSync(pair.cert)).fingerprint256,
    }));
    const install = (certificate: string | Buffer, secret: string | Buffer) => {
      writeFileSync(cert, certificate);
      writeFileSync(key, secret);
      relay.child.kill("SIGHUP");
    };
    const [first, second] = pairs as [(typeof pairs)[0], (typeof pairs)[0]];
    const kinds = [
      () => install(first.cert, first.key),
      () => install(first.cert, second.key),
      () => install(second.cert, second.key),
      () => install("no certificate", second.key),
      () => install("", ""),
    ];
    const met = async () => {
      const socket = await handshake();
      const { fingerprint256 } = socket.getPeerCertificate();
      socket.destroy();
      return fingerprint256;
    };
    const all = new Set<string | undefined>();
    for (let n = 0; n < 300; n++) {
      kinds[n % kinds.length]?.();
      if (n % 2 === 0) all.add(await met());
      if (n % 10 === 0) await neighbour.once();
    }
    expect(all).toEqual(new Set(pairs.map(({ print }) => print)));
    install(first.cert, first.key);
    expect(await holdsWithin(10_000, async () => (await met()) === first.print)).toBe(true);
    expect(relay.log.some((line) => line.includes("kept the old certificate"))).toBe(true);
    await expectWell();
  });

  test.each(["TLSv1", "TLSv1.1"] as const)("%s is refused", async (version) => {
    const ciphers = "DEFAULT@SECLEVEL=0";
    const socket = await handshake({ minVersion: version, maxVersion: version, ciphers }).catch(
      (error: NodeJS.ErrnoException) => error.code,
    );
    expect(socket).toMatch(/ALERT_PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL|ECONNRESET/);
    await expectWell();
  });

  test("one peer that renegotiates again and again is cut off, alone", async () => {
    const socket = (await handshake({ maxVersion: "TLSv1.2" })).resume();
    let done = 0;
    for (; done < 50 && !socket.destroyed; done++) {
      const error = await Promise.race([
        new Promise((resolve) => socket.renegotiate({}, resolve)),
        once(socket, "close"),
        wait(2000, "silence"),
      ]);
      if (error !== null) break;
    }
    expect(done).toBeLessThan(10);
    expect(await holdsWithin(15_000, () => socket.destroyed)).toBe(true);
    await expectWell();
  });

  test("plain HTTP and noise on the port end at once, and leave nothing", async () => {
    const before = await metric(relay, "pending_connections");
    const noise = [
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      "\0".repeat(2000),
      "\x16\x03\x01\x7f\xff\x01",
    ];
    const peers = noise.flatMap((text) =>
      Array.from({ length: 20 }, () => {
        const socket = rawSocket({ port: relay.port }).resume();
        socket.end(Buffer.from(text, "latin1"));
        return once(socket, "close");
      }),
    );
    await Promise.all(peers);
    const left = async () => (await metric(relay, "pending_connections")) - before;
    expect(await holdsWithin(15_000, async () => (await left()) <= 0)).toBe(true);
    await expectWell();
  });
});
