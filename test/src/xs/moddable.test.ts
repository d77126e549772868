/**
 * The example project as the real Moddable SDK builds and runs it, on a real relay. Needs
 * `MODDABLE` (the SDK, with its tools on PATH), and `MODDABLE_HOST`: a program that runs a built
 * mc.so, as mcsim does.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "node:tls";
import { fileURLToPath } from "node:url";
import { buildXsModules } from "@blindrelay/agent-sdk/testing/build/xs";
import { makeCertificates } from "@blindrelay/relay-server/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Credentials, openRelayFixture, type RelayFixture } from "./relay-fixture.ts";

const BUILD_MS = 300_000;
const host = process.env.MODDABLE_HOST;
const missing = process.env.MODDABLE === undefined ? "MODDABLE" : "MODDABLE_HOST";
const skipped = process.env.MODDABLE === undefined || host === undefined;
const sdk = fileURLToPath(new URL("../../../agent-sdk/", import.meta.url));

describe.skipIf(skipped)(
  `the example project on the Moddable SDK${skipped ? ` (skipped: ${missing} is not set)` : ""}`,
  () => {
    let fixture: RelayFixture;
    let folder: string;
    let child: ChildProcess | null = null;

    beforeAll(async () => {
      fixture = await openRelayFixture();
      folder = mkdtempSync(join(tmpdir(), "blindrelay-moddable-"));
      for (const part of ["moddable", "examples"]) {
        cpSync(join(sdk, part), join(folder, part), { recursive: true });
      }
      const modules = join(folder, "dist/moddable-modules");
      mkdirSync(modules, { recursive: true });
      for (const [name, code] of Object.entries(await buildXsModules())) {
        writeFileSync(join(modules, `${name}.js`), code);
      }
    });
    afterEach(() => powerOff());
    afterAll(async () => {
      await fixture?.end();
      rmSync(folder, { recursive: true, force: true });
    });

    /** Builds the project, and returns the path of the result. */
    const build = (
      name: string,
      who: Credentials & { readonly authority?: string },
      version: "1" | "2",
      args: string[],
    ): string => {
      const project = join(folder, "examples/moddable");
      const out = join(folder, "out", name);
      const root = join(folder, `flash-${name}/`);
      for (const made of [out, root]) mkdirSync(made, { recursive: true });
      const config = {
        relay: who.url,
        agent_id: who.agentId,
        relay_token: who.relayToken,
        agent_token: who.agentToken,
        packet_version: version,
        relay_ca: who.authority,
        file: { root },
      };
      writeFileSync(join(project, "agent.json"), JSON.stringify({ config }));
      const manifest = who.authority === undefined ? "manifest.json" : "manifest-tls.json";
      const flags = ["-m", "-p", "lin", "-t", "build", "-o", out, `./${manifest}`];
      execFileSync("mcconfig", [...flags, ...args], {
        cwd: project,
        stdio: ["ignore", "ignore", "ignore"],
      });
      const built = readdirSync(out, { recursive: true, encoding: "utf8" });
      return join(out, built.find((path) => path.endsWith("mc.so")) as string);
    };

    const powerOn = (path: string): void => {
      child = spawn(host as string, [path], { stdio: "ignore" });
    };

    const powerOff = async (): Promise<void> => {
      if (child === null) return;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
      child = null;
    };

    /**
     * The device program of the provisioning build does nothing; its work is done before it idles.
     */
    const provision = async (name: string, who: Credentials, version: "1" | "2"): Promise<void> => {
      powerOn(build(name, who, version, ["provision=1"]));
      const flash = join(folder, `flash-${name}`);
      while (readdirSync(flash).length === 0) await new Promise((done) => setTimeout(done, 50));
      await new Promise((done) => setTimeout(done, 500));
      await powerOff();
    };

    /** Settles when the agent answers. */
    const online = async (agent: ReturnType<RelayFixture["client"]["agent"]>): Promise<void> => {
      for (;;) {
        try {
          await agent.call("system.ping", {}, { idempotent: true, timeoutMs: 2_000 });
          return;
        } catch (error) {
          if (!(error as { readonly retryable?: boolean }).retryable) throw error;
          await new Promise((done) => setTimeout(done, 50));
        }
      }
    };

    it.each(["1", "2"] as const)(
      "answers calls and reconnects after a restart, with suite %s",
      async (version) => {
        const name = `v${version}`;
        const who = await fixture.addAgent(name);
        await provision(name, who, version);
        const path = build(name, who, version, []);
        const agent = fixture.client.agent(who.agentId, who.agentToken, { version });
        powerOn(path);
        await online(agent);
        const heard = new Promise((resolve) =>
          agent.on("event", (event, data) => resolve([event, data])),
        );
        expect(await agent.call("led.set", { on: true })).toEqual({ on: true });
        expect(await heard).toEqual(["led.changed", { on: true }]);
        const params = { text: "grüße 中文 🚰", long: "x".repeat(6000) };
        expect(await agent.call("echo", params)).toEqual(params);
        const many = Array.from({ length: 20 }, (_, i) => agent.call("echo", { i }));
        expect(await Promise.all(many)).toEqual(many.map((_, i) => ({ i })));
        await powerOff();
        powerOn(path);
        await online(agent);
        expect(await agent.call("echo", { n: 2 })).toEqual({ n: 2 });
      },
      BUILD_MS,
    );

    it(
      "refuses a relay whose certificate its authority did not issue, and accepts the right one afterwards",
      async () => {
        const keys = (name: string) => {
          const at = join(folder, name);
          mkdirSync(at);
          const { cert, key, ca } = makeCertificates(at, "nobody");
          const [chain, authority] = [readFileSync(cert), readFileSync(ca, "utf8")];
          return { cert: `${chain}${authority}`, key: readFileSync(key), authority };
        };
        const [right, other] = [keys("right"), keys("other")];
        const who = await fixture.addAgent("tls");
        const relay = Number(new URL(who.url).port);
        const tls = createServer(other, (socket) => {
          const link = connect(relay, "127.0.0.1");
          socket.pipe(link).pipe(socket);
          for (const one of [socket, link]) one.on("error", () => void socket.destroy());
        });
        let refused = 0;
        tls.on("tlsClientError", () => refused++);
        tls.listen(0, "127.0.0.1");
        await once(tls, "listening");
        const url = `wss://127.0.0.1:${(tls.address() as AddressInfo).port}`;
        const authority = right.authority.replaceAll(/-----.*-----|\n/g, "");
        const secure = { ...who, url, authority };
        await provision("tls", secure, "1");
        powerOn(build("tls", secure, "1", []));
        await expect.poll(() => refused, { timeout: 60_000 }).toBeGreaterThan(1);
        tls.setSecureContext(right);
        const agent = fixture.client.agent(who.agentId, who.agentToken);
        await online(agent);
        const params = { long: "x".repeat(6000) };
        expect(await agent.call("echo", params)).toEqual(params);
        tls.close();
      },
      BUILD_MS,
    );
  },
);
