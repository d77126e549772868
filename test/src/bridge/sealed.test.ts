/**
 * Mode `sealed`: the SDK on a device behind a real terminal, carried by the real command to a real
 * relay. The bridge's memory and output are then searched for what it must not know.
 */
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import type { Socket } from "node:net";
import { startAgent } from "@blindrelay/agent-sdk/node";
import { serialLinks } from "@blindrelay/agent-sdk/serial/node";
import type { Client } from "@blindrelay/client-sdk/node";
import { type Cable, HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Added, Running } from "../cli/processes.ts";
import { BridgeHouse, newsOf, until } from "./world.ts";

/** Which of the texts occur anywhere in the readable memory of a process. */
const foundInMemory = (pid: number, texts: readonly string[]): string[] => {
  const found = new Set<string>();
  // V8's strings have one or two bytes per character.
  const needles = texts.flatMap((text) => [
    [text, Buffer.from(text)] as const,
    [text, Buffer.from(text, "utf16le")] as const,
  ]);
  const longest = Math.max(...needles.map(([, bytes]) => bytes.length));
  const memory = openSync(`/proc/${pid}/mem`, "r");
  const chunk = Buffer.alloc(4 * 1024 * 1024);
  try {
    for (const line of readFileSync(`/proc/${pid}/maps`, "utf8").split("\n")) {
      const range = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line);
      if (range === null) continue;
      const end = Number.parseInt(range[2] as string, 16);
      for (let at = Number.parseInt(range[1] as string, 16); at < end; ) {
        let read = 0;
        try {
          read = readSync(memory, chunk, 0, Math.min(chunk.length, end - at), at);
        } catch {
          // Reserved, but never used.
        }
        if (read === 0) break;
        const bytes = chunk.subarray(0, read);
        for (const [text, needle] of needles) if (bytes.includes(needle)) found.add(text);
        // A text across two chunks is found in the next one, which overlaps.
        at += read < chunk.length ? read : read - longest;
      }
    }
  } finally {
    closeSync(memory);
  }
  return [...found];
};

const CAN_READ_MEMORY = (() => {
  try {
    closeSync(openSync(`/proc/${process.pid}/mem`, "r"));
    return true;
  } catch {
    return false;
  }
})();

describe.skipIf(!HAS_SOCAT)("blindrelay bridge --mode sealed", () => {
  const world = new BridgeHouse();
  let client: Client;
  let added: Added;
  let cable: Cable;
  let running: Running;
  const ends: (() => Promise<void>)[] = [];

  /** The board: the SDK with its secrets, and a UART. */
  const board = async (socket: Socket): Promise<void> => {
    const agent = await startAgent({
      url: "ws://of-no-meaning.invalid/wss",
      agentId: added.agent_id,
      relayToken: added.api_token,
      agentToken: added.agent_token,
      stateDir: world.house.path("state-board"),
      links: serialLinks(socket),
      program: (made) => {
        made.handle("echo", (params) => params);
        made.handle("reading", () => ({ secret: PLAINTEXT }));
      },
      log: () => undefined,
    });
    ends.push(() => agent.stop());
    await agent.online();
  };
  const PLAINTEXT = `the valve in hall ${Math.random()} is open`;

  beforeAll(async () => {
    await world.open();
    client = await world.client();
    added = await world.add("board");
    cable = world.cable();
    const socket = await cable.plug();
    const config = { relay: world.house.url, ports: [{ port: cable.path, mode: "sealed" }] };
    const file = world.house.write("sealed.json", JSON.stringify(config));
    running = world.house.start(["bridge", "--config", file, "--json"]);
    await newsOf(running, "port", "open");
    await board(socket);
  });
  afterAll(async () => {
    for (const end of ends) await end();
    await world.close();
  });

  it("carries calls, including the longest, and 200 at once", async () => {
    const agent = client.agent("board", added.agent_token);
    expect(await agent.call("reading")).toEqual({ secret: PLAINTEXT });
    const long = { text: "x".repeat(40_000) };
    expect(await agent.call("echo", long)).toEqual(long);
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, n) => agent.call("echo", { n })),
    );
    expect(answers).toEqual(Array.from({ length: 200 }, (_, n) => ({ n })));
  });

  it.skipIf(!CAN_READ_MEMORY)(
    "has neither the end-to-end secret nor plaintext in its memory or output",
    async () => {
      const agent = client.agent("board", added.agent_token);
      const sent = `close it at ${Math.random()} o'clock`;
      expect(await agent.call("echo", { sent })).toEqual({ sent });
      await agent.call("reading");
      const pid = running.child.pid as number;
      const texts = [added.agent_token, PLAINTEXT, sent, added.agent_token.slice(4, 40)];
      // Texts that do pass through it are found, so the search works.
      const passing = ['"sid":"'];
      expect(foundInMemory(pid, [...texts, ...passing])).toEqual(passing);
    },
  );

  it("is offline while the port is gone, and the same board reconnects", async () => {
    const presence: boolean[] = [];
    client.on("presence", ({ agentId, online }) => {
      if (agentId === "board") presence.push(online);
    });
    await cable.pull();
    await until(() => presence.includes(false));
    for (const end of ends.splice(0)) await end();
    const socket = await cable.plug();
    await newsOf(running, "port", "open");
    await board(socket);
    const agent = client.agent("board", added.agent_token);
    expect(await agent.call("echo", [1], { idempotent: true })).toEqual([1]);
    expect(presence.at(-1)).toBe(true);
  });

  it("printed nothing that it must not know", async () => {
    const { stdout, stderr } = await running.stop();
    for (const secret of [added.agent_token, added.api_token, PLAINTEXT]) {
      expect(stdout + stderr).not.toContain(secret);
    }
  });
});
