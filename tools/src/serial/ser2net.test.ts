/**
 * RFC 2217 with ser2net, the most common port server, on a pseudo terminal: a port without modem
 * lines, for which it never confirms the mask of modem states.
 */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { PortError } from "@blindrelay/agent-sdk/bridge";
import { DEFAULT_SETTINGS } from "@blindrelay/protocol/serial";
import { freePort } from "@blindrelay/protocol/testing/free-port";
import { describe, expect, it, onTestFinished } from "vitest";
import { rfc2217Opener } from "./rfc2217.ts";
import { Cable, HAS_SOCAT } from "./testing/pty.ts";
import { portServer } from "./testing/server.ts";

const SER2NET = ["/usr/sbin/ser2net", "/usr/bin/ser2net"].find(existsSync);
const HAS_SER2NET = SER2NET !== undefined && spawnSync(SER2NET, ["-v"]).error === undefined;

/** Resolves when the terminal is served. */
const serveTerminal = async (path: string): Promise<number> => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-ser2net-"));
  const port = await freePort();
  const file = join(folder, "ser2net.yaml");
  writeFileSync(
    file,
    `connection: &it
  accepter: telnet(rfc2217),tcp,127.0.0.1,${port}
  connector: serialdev,${path},115200n81,local
`,
  );
  const server = spawn(SER2NET as string, ["-n", "-c", file, "-P", join(folder, "pid")], {
    stdio: "ignore",
  });
  onTestFinished(() => {
    server.kill("SIGKILL");
    rmSync(folder, { recursive: true });
  });
  return port;
};

describe.skipIf(!HAS_SOCAT || !HAS_SER2NET)("ser2net (apt-get install ser2net)", () => {
  it("serves a port without modem lines: bytes pass in both directions, and a warning names what is missing", async () => {
    const cable = new Cable();
    onTestFinished(() => cable.end());
    const device = await cable.plug();
    const heard: Buffer[] = [];
    cable.received = (bytes) => heard.push(bytes);
    const port = await serveTerminal(cable.path);
    const warnings: string[] = [];
    const said: Buffer[] = [];
    const events = { data: (bytes: Uint8Array) => said.push(Buffer.from(bytes)), closed: () => {} };
    const open = await connected(() =>
      rfc2217Opener("127.0.0.1", port, {}, (text) => warnings.push(text))(DEFAULT_SETTINGS, events),
    );
    expect(warnings.join()).toContain("did not answer");
    await open.write(Buffer.from("M105\xff\n", "latin1"));
    await expect.poll(() => Buffer.concat(heard).toString("latin1")).toBe("M105\xff\n");
    device.write("ok\n");
    await expect.poll(() => Buffer.concat(said).toString("latin1")).toBe("ok\n");
    await open.control({ dtr: false });
    await open.close();
  });
});

/** Retries until the server listens. */
const connected = async <T>(connect: () => Promise<T>): Promise<T> => {
  for (let tries = 0; ; tries++) {
    try {
      return await connect();
    } catch (error) {
      const refused =
        error instanceof PortError && /ECONNREFUSED|nobody listens/.test(error.message);
      if (!refused || tries === 100) throw error;
      await wait(50);
    }
  }
};

it("a server that does not answer the mask is still used, with a warning", async () => {
  const { server, port } = await portServer([], { silentOn: [11, 5] });
  onTestFinished(() => void server.close());
  const warnings: string[] = [];
  const events = { data: () => {}, closed: () => {} };
  const opener = rfc2217Opener("127.0.0.1", port, {}, (text) => warnings.push(text));
  const open = await opener(DEFAULT_SETTINGS, events);
  expect(warnings).toEqual([
    `rfc2217://127.0.0.1:${port} did not answer flow control none and the mask of modem states; CTS, DSR and DCD may be unknown`,
  ]);
  await open.control({ rts: true });
  expect(warnings[1]).toBe(`rfc2217://127.0.0.1:${port} did not answer RTS`);
  await open.close();
});
