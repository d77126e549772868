/** Streams over an in-memory relay: the agent's end is protocol's table over a real session. */
import { StreamTable } from "@blindrelay/protocol/streams";
import type { CallError } from "../errors.ts";
import type { ReadStream } from "../read-stream.ts";
import { SECRET, World } from "./world.ts";

export const seqBytes = (length: number): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => (i * 7 + (i >> 8)) & 255);

/** An agent that sends `content` for "log.read" and stores what it gets for "log.write". */
export const house = async (content = seqBytes(100_000), sessionTtlS?: number) => {
  const world = new World();
  if (sessionTtlS !== undefined) world.relay.sessionTtlS = sessionTtlS;
  const agent = world.agent();
  const kept: number[] = [];
  const state = {
    /** By sid. */
    tables: new Map<string, StreamTable>(),
    /** The latest. */
    get table(): StreamTable | null {
      return [...this.tables.values()].at(-1) ?? null;
    },
    heldBack: 0,
    /** Sends one byte of "log.read" at this interval; 0: everything at once. */
    everyMs: 0,
    ended: [] as (string | null)[],
  };
  const { relay } = world;
  const tableFor = (sid: string): StreamTable => {
    const known = state.tables.get(sid);
    if (known !== undefined) return known;
    const table = new StreamTable({
      maxChunk: 10_000,
      notify: (method, params) => {
        agent.say(sid, { method, params });
        return true;
      },
    });
    state.tables.set(sid, table);
    return table;
  };
  agent.handlers.set("log.read", ({ params, sid, answer }) => {
    let at = 0;
    const stream = tableFor(sid).outgoing((params as { stream: number }).stream, {
      writable: () => {
        if (state.everyMs > 0) return dribble();
        at += stream.write(content.subarray(at));
        if (at === content.length) stream.end();
      },
      ended: (error) => state.ended.push(error),
    });
    let dribbling = false;
    const dribble = (goesOn = false) => {
      if (dribbling && !goesOn) return;
      dribbling = true;
      at += stream.write(content.subarray(at, at + 1));
      if (!stream.over) world.clock.set(state.everyMs, () => dribble(true));
    };
    answer({ size: content.length });
  });
  agent.handlers.set("log.write", ({ params, sid, answer }) => {
    const stream = tableFor(sid).incoming((params as { stream: number }).stream, {
      data: (bytes) => {
        kept.push(...bytes);
        stream.grant(bytes.length - state.heldBack);
      },
      ended: (error) => {
        state.ended.push(error);
        stream.confirm();
      },
    });
    // Before its answer, which agents are allowed to do.
    stream.grant(20_000);
    answer(null);
  });
  for (const method of ["stream.data", "stream.credit", "stream.end"]) {
    agent.handlers.set(method, ({ params, sid }) => state.tables.get(sid)?.receive(method, params));
  }
  const client = await world.connected();
  return { world, agent, relay, client, pump: client.agent("pump-7", SECRET), kept, state };
};

export const settle = async <T>(
  world: World,
  promise: Promise<T>,
  ms = 60_000,
): Promise<T | CallError> => {
  const result = promise.catch((error: CallError) => error);
  await world.run(ms);
  return result;
};

export const collect = async (reader: ReadStream): Promise<number[]> => {
  const all: number[] = [];
  for await (const chunk of reader) all.push(...chunk);
  return all;
};
