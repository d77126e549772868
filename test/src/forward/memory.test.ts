/**
 * What a dump of a process shows after its sessions under "3" and "4" have ended: whoever gets it,
 * and `agent_token`, has nothing that leads to what was said.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readFileSync, readSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { deriveSessionKeys, type Suite, type Version } from "@blindrelay/protocol/crypto";
import { ForwardClientSession } from "@blindrelay/protocol/forward-client";
import { DEFAULT_CLIENT_TIMINGS } from "@blindrelay/protocol/session";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";
import { describe, expect, it } from "vitest";
import { AGENT_ID, type Kind, MASK, type Told } from "./dumped.ts";

const CHUNK = 2 ** 24;
/** Enough of a secret not to be there by chance. */
const PART = 16;

/** Memory that the process can write, piece by piece; each overlaps the next one. */
function* memoryOf(pid: number): Generator<Buffer> {
  const file = openSync(`/proc/${pid}/mem`, "r");
  try {
    for (const line of readFileSync(`/proc/${pid}/maps`, "utf8").split("\n")) {
      const [, from = "", to = ""] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
      const end = Number.parseInt(to, 16);
      for (let at = Number.parseInt(from, 16); at < end; at += CHUNK) {
        const piece = Buffer.alloc(Math.min(CHUNK + PART, end - at));
        try {
          readSync(file, piece, 0, piece.length, at);
        } catch {
          break; // a device's, or the kernel's
        }
        yield piece;
      }
    }
  } finally {
    closeSync(file);
  }
}

/** What whoever has agent_token derives for these sessions: no dump is needed for that. */
const derivable = ({ agentToken, sids }: Told, version: Version): Set<string> => {
  const found = new Set<string>();
  const plain = nodeSuite();
  const noting =
    <Key>(make: (key: Uint8Array) => Key) =>
    (key: Uint8Array): Key => {
      found.add(Buffer.from(key).toString("hex"));
      return make(key);
    };
  const suite: Suite = {
    ...plain,
    hmacKey: noting(plain.hmacKey),
    aeadKey: (v, key) => noting((noted) => plain.aeadKey(v, noted))(key),
  };
  const client = new ForwardClientSession(
    {
      ...{ suite, agentId: AGENT_ID, agentToken, version, timings: DEFAULT_CLIENT_TIMINGS },
      random: (length) => new Uint8Array(length),
    },
    { x25519: nodeX25519, deviceKey: null },
  );
  for (const sid of sids) {
    deriveSessionKeys(suite, client.prk, version, sid.split(".")[0] as string);
    const { chain } = client.deriveKeys(sid) as unknown as { chain: Uint8Array };
    found.add(Buffer.from(chain).toString("hex"));
  }
  return found;
};

/** How many secrets of each kind a thief looks for, and the kinds of those that are there. */
const theft = async (version: Version, keep: Kind | "") => {
  const program = fileURLToPath(new URL("dumped.ts", import.meta.url));
  // Without our instruments, which keep keys.
  const bare = ["-u", "NODE_OPTIONS", process.execPath, "--expose-gc", program, version, keep];
  const child = spawn("env", bare, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  try {
    const [told] = (await once(child, "message")) as [Told];
    const known = derivable(told, version);
    const wanted = told.secrets
      .map(({ kind, masked }) => ({ kind, bytes: Buffer.from(masked.map((byte) => byte ^ MASK)) }))
      .filter(({ bytes }) => !known.has(bytes.toString("hex")));
    const found = new Set<Kind>();
    for (const piece of memoryOf(child.pid as number)) {
      for (const { kind, bytes } of wanted)
        if (piece.includes(bytes.subarray(0, PART))) found.add(kind);
    }
    return { kinds: new Set(wanted.map(({ kind }) => kind)), found: [...found] };
  } finally {
    child.disconnect();
  }
};

describe.skipIf(!existsSync("/proc/self/mem"))(
  "a dump of the process (skipped without /proc)",
  () => {
    it.each<Version>(["3", "4"])("has no secret of ended sessions under %s", async (version) => {
      const { kinds, found } = await theft(version, "");
      expect([...kinds].sort()).toEqual(["derived", "private", "sealing", "shared"]);
      expect(found).toEqual([]);
    });

    it.each<Kind>(["private", "shared", "derived", "sealing"])(
      "would show a %s one that was kept",
      async (kind) => {
        expect((await theft("3", kind)).found).toEqual([kind]);
      },
    );
  },
);
