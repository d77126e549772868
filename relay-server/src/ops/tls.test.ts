/**
 * https and wss: new certificates while links stay open, and errors that name the problem with a
 * file.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { connect, type TLSSocket } from "node:tls";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { initStore } from "../control/data-dir.ts";
import { type RunningServer, startServer } from "../server.ts";
import { openTls } from "./tls.ts";

const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-tls-"));
  const data = join(folder, "data");
  await initStore({ data, username: "ada", password: "correct horse", totp: false });
});
afterAll(() => rmSync(folder, { recursive: true }));

const path = (name: string) => join(folder, name);

/** A self-signed pair as `name.crt` and `name.key`. */
const makePair = (name: string, days = 3650) => {
  const subject = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=IP:127.0.0.1"];
  const made = spawnSync("openssl", [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
    ...[
      "-days",
      String(days),
      ...subject,
      "-keyout",
      path(`${name}.key`),
      "-out",
      path(`${name}.crt`),
    ],
  ]);
  expect(made.status, String(made.stderr)).toBe(0);
};

describe.skipIf(!hasOpenssl)("with certificates (requires the openssl command)", () => {
  let server: RunningServer;
  beforeAll(() => {
    makePair("first");
    makePair("second");
  });
  beforeEach(async () => {
    install("first");
    server = await startServer({
      data: path("data"),
      port: 0,
      metricsPort: 0,
      tlsCert: path("live.crt"),
      tlsKey: path("live.key"),
      logLevel: "silent",
    });
  });
  afterEach(() => server.stop());

  const install = (name: string) => {
    copyFileSync(path(`${name}.crt`), path("live.crt"));
    copyFileSync(path(`${name}.key`), path("live.key"));
  };

  /** The certificate presented to a new connection. */
  const met = async (port = new URL(server.url).port) => {
    const socket: TLSSocket = connect({ port: Number(port), rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const name = socket.getPeerCertificate().subject.CN;
    socket.destroy();
    return name;
  };

  const openLink = async () => {
    const socket = new WebSocket(`${server.url.replace("https", "wss")}/wss`, {
      rejectUnauthorized: false,
    });
    await once(socket, "open");
    return {
      answers: async () => {
        socket.send(JSON.stringify({ type: "ping" }));
        return JSON.parse(String((await once(socket, "message"))[0]));
      },
      close: () => socket.terminate(),
    };
  };

  test("a reload uses the new pair for new connections, and open links continue", async () => {
    expect(server.url).toMatch(/^https:/);
    const link = await openLink();
    expect(await met()).toBe("first");
    install("second");
    server.reloadTls();
    expect(await met()).toBe("second");
    expect(await link.answers()).toMatchObject({ code: "AUTH_REQUIRED" });
    link.close();
  });

  test("a certificate that has ended, or ends soon, is logged, at a reload too, and its end is known", () => {
    makePair("short", 10);
    install("short");
    const logged: [string, string][] = [];
    const write = (level: string) => (_fields: unknown, what: string) => logged.push([level, what]);
    const log = { info: write("info"), warn: write("warn"), error: write("error") };
    let nowMs = Date.now();
    const tls = openTls(
      { cert: path("live.crt"), key: path("live.key") },
      log as never,
      () => nowMs,
    );
    const soon = ["warn", "the certificate ends soon: renew it"];
    expect(logged.splice(0)).toEqual([soon]);
    expect(Math.abs(tls.endMs() - nowMs - 10 * 86_400_000)).toBeLessThan(60_000);
    nowMs = tls.endMs() + 1;
    tls.look();
    const gone = ["error", "the certificate has expired: peers that check it stay away"];
    expect(logged.splice(0)).toEqual([gone]);
    install("first");
    tls.reload();
    tls.look();
    expect(logged.splice(0)).toEqual([["info", "using the new certificate"]]);
    install("short");
    tls.reload();
    expect(logged.splice(0)).toContainEqual(gone);
    tls.stop();
  });

  test("changed files are noticed without a signal", async () => {
    install("second");
    while ((await met()) !== "second") await new Promise((resolve) => setTimeout(resolve, 100));
  });

  test("SIGHUP reads them again at once, and does not end the relay", async () => {
    const main = join(import.meta.dirname, "../main.ts");
    const files = ["--tls-cert", path("live.crt"), "--tls-key", path("live.key")];
    const ports = ["--port", "0", "--metrics-port", "0", "--log-level", "info"];
    await server.stop(); // a store cannot have two relays
    const child = spawn(process.execPath, [
      main,
      "start",
      "--data",
      path("data"),
      ...ports,
      ...files,
    ]);
    const [first] = await once(createInterface(child.stdout), "line");
    const log = createInterface(child.stderr);
    const { port } = new URL(JSON.parse(first).url);
    install("second");
    child.kill("SIGHUP");
    const lines: string[] = [];
    for await (const line of log) {
      lines.push(line);
      if (line.includes("using the new certificate")) break;
    }
    expect(lines.join()).toContain("Server listening at https://");
    expect(await met(port)).toBe("second");
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  test("a pair that does not match, or is not PEM, changes nothing", async () => {
    copyFileSync(path("second.crt"), path("live.crt"));
    server.reloadTls();
    expect(await met()).toBe("first");
    writeFileSync(path("live.key"), "");
    server.reloadTls();
    expect(await met()).toBe("first");
    install("second");
    server.reloadTls();
    expect(await met()).toBe("second");
  });

  test("unusable files are a usage error, with the flag and the fix", async () => {
    const start = (tlsCert: string, tlsKey: string) =>
      startServer({ data: path("data"), port: 0, metricsPort: 0, tlsCert, tlsKey });
    const [cert, key] = [path("first.crt"), path("first.key")];
    await expect(start(cert, path("second.key"))).rejects.toThrow("is not the key of --tls-cert");
    await expect(start(key, key)).rejects.toThrow(/\(--tls-cert\): .*give a PEM file/);
    await expect(start(cert, path("nothing"))).rejects.toMatchObject({ exitCode: 2 });
  });
});

test("a certificate without a key is refused, and so is a key without a certificate", async () => {
  const start = startServer({ data: path("data"), tlsCert: path("x") });
  await expect(start).rejects.toThrow("--tls-cert and --tls-key belong together");
});
