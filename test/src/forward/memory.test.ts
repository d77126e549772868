/**
 * What a dump of a process shows after its sessions under "3" and "4" have ended: whoever gets it,
 * and `agent_token`, has nothing that leads to what was said.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { seededRandom } from "@blindrelay/agent-sdk/memory";
import { XsWorker } from "@blindrelay/agent-sdk/testing/xs-worker";
import { makeToken } from "@blindrelay/protocol";
import { deriveSessionKeys, type Version } from "@blindrelay/protocol/crypto";
import { ForwardClientSession } from "@blindrelay/protocol/forward-client";
import { DEFAULT_CLIENT_TIMINGS } from "@blindrelay/protocol/session";
import { nobleChachaSuite } from "@blindrelay/protocol/suites/noble-chacha";
import { nobleX25519 } from "@blindrelay/protocol/suites/noble-x25519";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { engine, withoutEngine } from "../xs/engine.ts";
import { AGENT_ID, converse } from "./conversation.ts";
import { MASK, type Told } from "./dumped.ts";
import { type Kind, tellingSuite, tellingX25519 } from "./telling.ts";

const CHUNK = 2 ** 18;
/** In the middle: X25519 changes bits at both ends of a private value. */
const part = (secret: Uint8Array): Uint8Array => secret.subarray(8, 24);
const OVERLAP = 16;
const UNTOUCHED = Buffer.alloc(CHUNK + OVERLAP);

/** Memory that the process can write, piece by piece; each overlaps the next one. */
function* memoryOf(pid: number): Generator<Buffer> {
  const file = openSync(`/proc/${pid}/mem`, "r");
  try {
    for (const line of readFileSync(`/proc/${pid}/maps`, "utf8").split("\n")) {
      const [, from = "", to = ""] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
      const end = Number.parseInt(to, 16);
      for (let at = Number.parseInt(from, 16); at < end; at += CHUNK) {
        const piece = Buffer.alloc(Math.min(CHUNK + OVERLAP, end - at));
        try {
          readSync(file, piece, 0, piece.length, at);
        } catch {
          break; // a device's, or the kernel's
        }
        if (!piece.equals(UNTOUCHED.subarray(0, piece.length))) yield piece;
      }
    }
  } finally {
    closeSync(file);
  }
}

interface Secret {
  readonly kind: Kind;
  readonly bytes: Buffer;
}

const kindsOf = (secrets: readonly Secret[]): Kind[] =>
  [...new Set(secrets.map(({ kind }) => kind))].sort();

const KINDS: readonly Kind[] = ["derived", "private", "sealing", "shared"];

/** The kinds of those that are there. */
const foundIn = (pieces: Iterable<Buffer>, secrets: readonly Secret[]): Kind[] => {
  const found: Secret[] = [];
  for (const piece of pieces)
    found.push(...secrets.filter(({ bytes }) => piece.includes(part(bytes))));
  return kindsOf(found);
};

/** Those that whoever has agent_token cannot derive anyway. */
const beyondToken = (
  secrets: readonly Secret[],
  agentToken: string,
  sids: readonly string[],
  version: Version,
): Secret[] => {
  const known = new Set<string>();
  const note = (bytes: Uint8Array): void => {
    known.add(Buffer.from(bytes).toString("hex"));
  };
  const suite = tellingSuite(nodeSuite(), (_kind, key) => note(key));
  const client = new ForwardClientSession(
    {
      ...{ suite, agentId: AGENT_ID, agentToken, version, timings: DEFAULT_CLIENT_TIMINGS },
      random: (length) => new Uint8Array(length),
    },
    { x25519: nodeX25519, deviceKey: null },
  );
  for (const sid of sids) {
    deriveSessionKeys(suite, client.prk, version, sid.split(".")[0] as string);
    note((client.deriveKeys(sid) as unknown as { readonly chain: Uint8Array }).chain);
  }
  // Most are both sides'.
  const all = new Map(secrets.map((secret) => [secret.bytes.toString("hex"), secret]));
  for (const hex of known) all.delete(hex);
  return [...all.values()];
};

describe.skipIf(!existsSync("/proc/self/mem"))("a dump of Node (skipped without /proc)", () => {
  const theft = async (version: Version, keep: Kind | "") => {
    const program = fileURLToPath(new URL("dumped.ts", import.meta.url));
    // Without our instruments, which keep keys.
    const bare = ["-u", "NODE_OPTIONS", process.execPath, "--expose-gc", program, version, keep];
    const child = spawn("env", bare, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    try {
      const [told] = (await once(child, "message")) as [Told];
      const all = told.secrets.map(({ kind, masked }) => ({
        kind,
        bytes: Buffer.from(masked.map((byte) => byte ^ MASK)),
      }));
      const wanted = beyondToken(all, told.agentToken, told.sids, version);
      return { kinds: kindsOf(wanted), found: foundIn(memoryOf(child.pid as number), wanted) };
    } finally {
      child.disconnect();
    }
  };

  it.each<Version>(["3", "4"])("has no secret of ended sessions under %s", async (version) => {
    // A collector that moves a value before it is overwritten leaves a copy, by chance; what the
    // code keeps is there each time.
    let always: readonly Kind[] = KINDS;
    for (let tries = 0; tries < 4 && always.length > 0; tries++) {
      const { kinds, found } = await theft(version, "");
      expect(kinds).toEqual(KINDS);
      always = always.filter((kind) => found.includes(kind));
    }
    expect(always).toEqual([]);
  });

  it.each(KINDS)("would show a %s one that was kept", async (kind) => {
    expect((await theft("3", kind)).found).toContain(kind);
  });
});

describe.skipIf(withoutEngine)("a dump of XS", () => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-dump-"));
  const agentToken = makeToken("e2e", new Uint8Array(32).fill(3));
  const [seed, next] = [7, 8];
  let script = "";
  beforeAll(async () => {
    const { outputFiles } = await build({
      entryPoints: [fileURLToPath(new URL("in-xs.ts", import.meta.url))],
      bundle: true,
      write: false,
      format: "iife",
      target: "esnext",
      platform: "neutral",
      mainFields: ["module", "main"],
    });
    script = outputFiles[0]?.text ?? "";
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  /** One session, a collection, another session and a collection; `live`: of objects in use. */
  const theft = async (keeps: boolean) => {
    const all: Secret[] = [];
    const tell = (kind: Kind, secret: Uint8Array): void => {
      all.push({ kind, bytes: Buffer.from(secret) });
    };
    const suite = tellingSuite(nobleChachaSuite(), tell);
    const x25519 = tellingX25519(nobleX25519, tell);
    const random = seededRandom(seed);
    const sids = converse({ suite, x25519, random, agentToken, version: "3" }, 1);
    const wanted = beyondToken(all, agentToken, sids, "3");
    const worker = new XsWorker({ engine, maxCompute: 1e10 });
    try {
      worker.evaluate(script);
      const run = (from: number) =>
        worker.evaluate(`run(${JSON.stringify(agentToken)}, ${from}, 1, ${keeps})`);
      const snapshot = join(folder, "heap");
      run(seed);
      worker.snapshot(snapshot);
      const live = foundIn([readFileSync(snapshot)], wanted);
      const freed = foundIn(memoryOf(worker.pid), wanted);
      run(next);
      worker.snapshot(snapshot);
      return { kinds: kindsOf(wanted), live, freed, later: foundIn(memoryOf(worker.pid), wanted) };
    } finally {
      await worker.close();
    }
  };

  it("has no secret in an object that is used, and none at all after the next session", async () => {
    // What XS frees stays in memory until it is used again.
    expect(await theft(false)).toEqual({ kinds: KINDS, live: [], freed: KINDS, later: [] });
  });

  it("would show private values that were kept", async () => {
    expect(await theft(true)).toMatchObject({ live: ["private"], later: ["private"] });
  });
});
