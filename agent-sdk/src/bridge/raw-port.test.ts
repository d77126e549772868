/** The numbers of a raw port, byte by byte, as a client sees them that grants what it chooses. */

import { MAX_KEPT_BYTES } from "@blindrelay/protocol/serial";
import { fromBase64, toBase64 } from "@blindrelay/protocol/streams";
import { describe, expect, it } from "vitest";
import { CLIENT_LEFT } from "../core/agent.ts";
import { Streams } from "../core/streams.ts";
import { ManualTimer, seededRandom } from "../memory/index.ts";
import type { SessionPart } from "../node/index.ts";
import { NO_STATUS } from "./port.ts";
import { RawPort } from "./raw-port.ts";

/** What a writer may send at first. */
const WRITE_WINDOW = 65_536;

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

class Desk {
  readonly timer = new ManualTimer();
  readonly line = new RawPort("tty0", "first", {
    timer: this.timer,
    random: seededRandom(1),
    date: () => "",
  });
  /** Writes that the port is accepting. */
  readonly writes: { readonly bytes: number[]; readonly taken: () => void }[] = [];
  /** By session: bytes that came, and the notifications about what is lost. */
  readonly got = new Map<string, number[]>();
  readonly lost = new Map<string, { from: number; bytes: number }[]>();
  /** What the bridge has granted to the writer's stream. */
  granted: number[] = [];
  /** When something came of a session: now, or this. */
  readonly heardAt = new Map<string, number | null>();
  came: () => void = () => undefined;
  isPaused = false;
  private readonly part: SessionPart;
  private number = 0;

  constructor() {
    let part!: SessionPart;
    const streams = new Streams({
      log: () => undefined,
      after: () => () => undefined,
      attach: (attached: SessionPart) => {
        part = attached;
        return {
          maxPlaintext: 47_000,
          heardAt: () => 0,
          send: (sid: string, text: string) => {
            const { method, params } = JSON.parse(text);
            if (method === "stream.credit") this.granted.push(params.bytes);
            if (method === "stream.data") this.take(sid, params.data);
            return true;
          },
        };
      },
    });
    this.part = part;
    const port = {
      write: (bytes: Uint8Array) =>
        new Promise<void>((taken) => this.writes.push({ bytes: [...bytes], taken })),
      pause: () => {
        this.isPaused = true;
      },
      resume: () => {
        this.isPaused = false;
      },
      configure: async () => undefined,
      control: async () => undefined,
      status: async () => NO_STATUS,
      close: async () => undefined,
    };
    this.line.opened(port, {
      streams,
      heardAt: (sid) => {
        const heardAt = this.heardAt.get(sid);
        return heardAt === undefined ? this.timer.now() : heardAt;
      },
      notify: (sid, method, params) => {
        const told = params as { from: number; bytes: number };
        if (method === "serial.lost") this.lost.set(sid, [...(this.lost.get(sid) ?? []), told]);
        return true;
      },
    });
  }

  /** Resumes with a claim of the session's name, and gives credit for `credit` bytes. */
  async resume(
    sid: string,
    from: number | undefined,
    credit: number,
    writes = false,
    opening = this.line.opening,
    session = sid,
  ) {
    const stream = ++this.number;
    const write = writes ? { stream: ++this.number } : undefined;
    const answer = await this.line.resume(session, {
      claim: sid,
      user: "ada",
      opening,
      read: { stream, from },
      write,
      takeover: false,
    });
    this.grant(session, stream, credit);
    return { ...answer, stream, write: write?.stream ?? 0 };
  }

  grant(sid: string, stream: number, bytes: number): void {
    if (bytes > 0) this.part.receive("stream.credit", { stream, bytes }, sid);
  }

  write(sid: string, stream: number, ...bytes: number[]): void {
    this.part.receive("stream.data", { stream, data: toBase64(Uint8Array.from(bytes)) }, sid);
  }

  says(...bytes: number[]): void {
    this.line.data(Uint8Array.from(bytes));
    this.timer.advance(10);
  }

  private take(sid: string, data: string): void {
    this.came();
    this.got.set(sid, [...(this.got.get(sid) ?? []), ...(fromBase64(data) ?? [])]);
  }
}

describe("the numbers of a raw port", () => {
  it("keeps what is not acknowledged to the byte, and says where it begins", async () => {
    const desk = new Desk();
    const { stream } = await desk.resume("a", undefined, 10);
    desk.says(0, 1, 2, 3, 4, 5, 6, 7);
    desk.grant("a", stream, 3);
    const { read } = await desk.resume("a", 0, 10);
    expect(read).toBe(3);
    expect(desk.lost.get("a")).toEqual([expect.objectContaining({ from: 0, bytes: 3 })]);
    expect(desk.got.get("a")?.slice(8)).toEqual([3, 4, 5, 6, 7]);
  });

  it("goes on at the very byte that the client names, though another reader needs earlier ones", async () => {
    const desk = new Desk();
    await desk.resume("slow", undefined, 0);
    await desk.resume("a", undefined, 100);
    desk.says(0, 1, 2, 3);
    expect(await desk.resume("a", 2, 100)).toMatchObject({ read: 2 });
    desk.says(4);
    expect(desk.got.get("a")).toEqual([0, 1, 2, 3, 2, 3, 4]);
    expect(desk.lost.get("a")).toBeUndefined();
    expect(await desk.resume("slow", 0, 100)).toMatchObject({ read: 0 });
    expect(desk.got.get("slow")).toEqual([0, 1, 2, 3, 4]);
  });

  it("goes on at the next byte for a client that heard of more than has come", async () => {
    const desk = new Desk();
    await desk.resume("a", undefined, 10);
    desk.says(0, 1, 2);
    expect(await desk.resume("a", 3, 10)).toMatchObject({ read: 3 });
    expect(await desk.resume("a", 4, 10)).toMatchObject({ read: 3 });
    desk.says(3);
    expect(desk.got.get("a")).toEqual([0, 1, 2, 3]);
    expect(desk.lost.get("a")).toBeUndefined();
  });

  it("tells what is lost once, and counts it as acknowledged", async () => {
    const desk = new Desk();
    const { stream } = await desk.resume("a", undefined, 2);
    desk.says(0, 1, 2, 3);
    desk.line.purge("a", true, false);
    expect(desk.lost.get("a")).toEqual([expect.objectContaining({ from: 2, bytes: 2 })]);
    desk.says(4, 5);
    // Of two bytes sent, one is acknowledged; the two that are lost are no part of the credit.
    desk.grant("a", stream, 1);
    expect(desk.got.get("a")).toEqual([0, 1, 4]);
    expect(await desk.resume("a", 5, 2)).toMatchObject({ read: 5 });
    expect(desk.got.get("a")).toEqual([0, 1, 4, 5]);
    expect(desk.lost.get("a")).toHaveLength(1);
  });

  it("never sends what it told as lost, though the client resumes from before that", async () => {
    const desk = new Desk();
    await desk.resume("slow", undefined, 0);
    await desk.resume("a", undefined, 0);
    desk.says(0, 1, 2, 3);
    desk.line.purge("a", true, false);
    expect(desk.lost.get("a")).toEqual([expect.objectContaining({ from: 0, bytes: 4 })]);
    expect(await desk.resume("a", 0, 100)).toMatchObject({ read: 4 });
    desk.says(4);
    expect(desk.got.get("a")).toEqual([4]);
  });

  it("gathers what a reader gets, whatever one that is away or stalls has not taken", async () => {
    const desk = new Desk();
    let messages = 0;
    await desk.resume("stalled", undefined, 0);
    await desk.resume("away", undefined, 100);
    desk.line.lost("away", "the session is over");
    await desk.resume("a", undefined, 1_000_000);
    desk.says(...new Uint8Array(20_000));
    desk.came = () => messages++;
    for (let n = 0; n < 100; n++) {
      desk.line.data(new Uint8Array(300));
      desk.timer.advance(1);
    }
    expect(messages).toBeLessThan(10);
  });

  it("pauses the port when it keeps all it may, and resumes it at half of that", async () => {
    const desk = new Desk();
    const { stream } = await desk.resume("a", undefined, MAX_KEPT_BYTES + 2);
    desk.line.data(new Uint8Array(MAX_KEPT_BYTES - 1));
    expect(desk.isPaused).toBe(false);
    desk.says(1);
    expect(desk.isPaused).toBe(true);
    desk.grant("a", stream, MAX_KEPT_BYTES / 2 - 1);
    expect(desk.isPaused).toBe(true);
    desk.grant("a", stream, 1);
    expect(desk.isPaused).toBe(false);
  });

  it("keeps for a minute what a client that left its session has not acknowledged, and pauses for it no port", async () => {
    const desk = new Desk();
    const leave = (session: string): void => {
      desk.heardAt.set(session, null);
      desk.line.lost(session, CLIENT_LEFT);
    };
    const comeBack = (session: string) =>
      desk.resume("a", 2, MAX_KEPT_BYTES, true, desk.line.opening, session);
    await desk.resume("a", undefined, 10, true);
    desk.says(0, 1, 2, 3);
    leave("a");
    desk.says(4);
    expect(desk.line.usage).toMatchObject({ user: null, watchers: 0 });
    desk.timer.advance(59_000);
    expect(await comeBack("a2")).toMatchObject({ read: 2 });
    expect(desk.got.get("a2")).toEqual([2, 3, 4]);

    leave("a2");
    for (let n = 0; n <= MAX_KEPT_BYTES; n += 1_024) desk.line.data(new Uint8Array(1_024));
    expect(desk.isPaused).toBe(false);
    desk.timer.advance(60_001);
    expect(await comeBack("a3")).toMatchObject({ read: 5 + MAX_KEPT_BYTES + 1_024 });
  });

  it("has room for one more by what was kept for clients that left, not for one whose link is lost", async () => {
    const desk = new Desk();
    await desk.resume("a", undefined, 10, true);
    desk.says(0, 1, 2, 3);
    desk.heardAt.set("a", null);
    desk.line.lost("a", "the link was lost");
    for (let n = 0; n < 70; n++) {
      await desk.resume(`watcher ${n}`, undefined, 10);
      desk.heardAt.set(`watcher ${n}`, null);
      desk.line.lost(`watcher ${n}`, CLIENT_LEFT);
    }
    await desk.resume("a", 2, 10, true, desk.line.opening, "a2");
    expect(desk.got.get("a2")).toEqual([2, 3]);
  });

  it("has what waits at a resume sent again, writes it once, and grants what the port took", async () => {
    const desk = new Desk();
    const first = await desk.resume("a", undefined, 10, true);
    const half = WRITE_WINDOW / 2;
    desk.write("a", first.write, ...new Uint8Array(half).fill(1));
    desk.write("a", first.write, 2, 3);
    await settled();
    const second = await desk.resume("a", 0, 10, true);
    expect(second.written).toBe(0);
    desk.granted = [];
    desk.write("a", second.write, ...new Uint8Array(half).fill(1), 2);
    desk.write("a", second.write, 3, 4);
    await settled();
    expect(desk.granted).toEqual([]);
    for (const length of [half, 2, 1]) {
      expect(desk.writes.at(-1)?.bytes).toHaveLength(length);
      desk.writes.at(-1)?.taken();
      await settled();
    }
    expect(desk.writes.slice(1).map(({ bytes }) => bytes)).toEqual([[2, 3], [4]]);
    expect(desk.granted).toEqual([half]);
    expect(await desk.resume("a", 0, 10, true)).toMatchObject({ written: half + 3 });
  });

  it("grants nothing of what has not come again, though the port took it", async () => {
    const desk = new Desk();
    const first = await desk.resume("a", undefined, 10, true);
    const half = WRITE_WINDOW / 2;
    desk.write("a", first.write, ...new Uint8Array(half + 1));
    await settled();
    const second = await desk.resume("a", 0, 10, true);
    desk.write("a", second.write, 0);
    desk.granted = [];
    desk.writes[0]?.taken();
    await settled();
    expect(desk.granted).toEqual([]);
    desk.write("a", second.write, ...new Uint8Array(half));
    expect(desk.granted).toEqual([half + 1]);
  });

  it("leaves a claim to the session that had it last, though one that is over asked for it before", async () => {
    const desk = new Desk();
    await desk.resume("holder", undefined, 10, true);
    desk.heardAt.set("holder", -1);
    let outcome = "";
    desk.resume("a", undefined, 10, true).catch((error: Error) => {
      outcome = error.message;
    });
    const pass = async (ms: number): Promise<void> => {
      await settled();
      desk.timer.advance(ms);
      await settled();
    };
    await pass(20);
    const later = desk.resume("a", undefined, 10, true, null, "later");
    await pass(40);
    desk.heardAt.set("a", null);
    desk.heardAt.set("holder", null);
    desk.line.lost("holder", CLIENT_LEFT);
    // The later one looks first, 50 ms after it asked.
    await pass(10);
    await later;
    await pass(40);
    expect(outcome).not.toBe("");
    desk.says(1);
    expect(desk.got.get("later")).toEqual([1]);
    expect(desk.line.isWritten).toBe(true);
  });

  it.each(["before", "never"])(
    "names no writer when each session that asked for a claim is over that was used %s",
    async (used) => {
      const desk = new Desk();
      if (used === "before") await desk.resume("a", undefined, 10);
      await desk.resume("holder", undefined, 10, true);
      desk.heardAt.set("holder", -1);
      const refused = (session: string): Promise<unknown> =>
        desk.resume("a", undefined, 10, true, null, session).catch(({ message }) => message);
      const pass = async (ms: number): Promise<void> => {
        await settled();
        desk.timer.advance(ms);
        await settled();
      };
      const first = refused("first");
      await pass(20);
      const later = refused("later");
      await pass(40);
      for (const sid of ["first", "later", "holder"]) desk.heardAt.set(sid, null);
      desk.line.lost("holder", CLIENT_LEFT);
      // The later one looks first, 50 ms after it asked.
      await pass(10);
      expect(await later).toBe("the session is over");
      await pass(40);
      expect(await first).toMatch(used === "before" ? "resumed since" : "took over");
      expect(desk.line.usage).toMatchObject({ user: null });
    },
  );

  it("is free after a resume with a number that is no stream's", async () => {
    const desk = new Desk();
    await desk.resume("a", undefined, 10);
    const refused = desk.line.resume("a", {
      claim: "a",
      user: "ada",
      opening: desk.line.opening,
      read: { stream: 8, from: undefined },
      write: { stream: 8 },
      takeover: false,
    });
    await expect(refused).rejects.toThrow("stream 8 is in use");
    expect(desk.line.usage).toMatchObject({ user: null });
  });

  it("lets the next process with a claim write after what waits of the one before", async () => {
    const desk = new Desk();
    const first = await desk.resume("a", undefined, 10, true);
    desk.write("a", first.write, 1, 2, 3);
    await settled();
    const second = await desk.resume("a", undefined, 10, true, null);
    expect(second.written).toBe(3);
    desk.write("a", second.write, 4);
    desk.writes[0]?.taken();
    await settled();
    expect(desk.writes[1]?.bytes).toEqual([4]);
  });

  it("keeps no more than two windows of processes with a claim that come one after the other", async () => {
    const desk = new Desk();
    const write = async () => {
      const { write } = await desk.resume("a", undefined, 10, true, null);
      desk.write("a", write, ...new Uint8Array(WRITE_WINDOW));
      await settled();
    };
    await write();
    await write();
    await expect(write()).rejects.toThrow("too much of this claim waits to be written");
    desk.writes[0]?.taken();
    await settled();
    await write();
  });

  it("grants the next process with a claim nothing that the one before has written", async () => {
    const desk = new Desk();
    const half = WRITE_WINDOW / 2;
    const first = await desk.resume("a", undefined, 10, true);
    desk.write("a", first.write, ...new Uint8Array(half));
    await settled();
    const second = await desk.resume("a", undefined, 10, true, null);
    desk.write("a", second.write, ...new Uint8Array(half).fill(1));
    const third = await desk.resume("a", 0, 10, true);
    expect([second.written, third.written]).toEqual([half, half]);
    desk.write("a", third.write, ...new Uint8Array(half).fill(1));
    desk.granted = [];
    desk.writes[0]?.taken();
    await settled();
    expect(desk.granted).toEqual([]);
    desk.writes[1]?.taken();
    await settled();
    expect([desk.granted, desk.writes.length]).toEqual([[half], 2]);
  });

  it("writes what comes in any of the turns in which it has just finished", async () => {
    for (let turns = 0; turns < 12; turns++) {
      const desk = new Desk();
      const { write } = await desk.resume("a", undefined, 10, true);
      desk.write("a", write, 1);
      await settled();
      desk.writes[0]?.taken();
      for (let turn = 0; turn < turns; turn++) await null;
      desk.write("a", write, 2);
      await settled();
      expect([turns, desk.writes.length]).toEqual([turns, 2]);
    }
  });

  it("grants what the port took in halves of the window, to the byte", async () => {
    const desk = new Desk();
    const { write } = await desk.resume("a", undefined, 10, true);
    expect(desk.granted).toEqual([WRITE_WINDOW]);
    const pass = async (size: number): Promise<void> => {
      desk.write("a", write, ...new Uint8Array(size));
      await settled();
      desk.writes.at(-1)?.taken();
      await settled();
    };
    for (const size of [10_000, 10_000, 10_000, WRITE_WINDOW / 2 - 30_001]) await pass(size);
    expect(desk.granted).toEqual([WRITE_WINDOW]);
    await pass(1);
    expect(desk.granted).toEqual([WRITE_WINDOW, WRITE_WINDOW / 2]);
  });

  it("purges what waits and counts it, but not what the port is accepting, settings or an end", async () => {
    const desk = new Desk();
    const { write } = await desk.resume("a", undefined, 10, true);
    desk.write("a", write, 1, 2, 3);
    await settled();
    desk.write("a", write, 4, 5);
    let configured = 0;
    const change = desk.line.inOrder("a", async () => {
      configured++;
    });
    desk.line.purge("a", false, true);
    const second = await desk.resume("a", 0, 10, true);
    expect(second.written).toBe(0);
    desk.write("a", second.write, 1, 2, 3, 4, 5);
    desk.writes[0]?.taken();
    await change;
    expect([configured, desk.writes.length]).toEqual([1, 1]);
    expect(await desk.resume("a", 0, 10, true)).toMatchObject({ written: 5 });
  });
});
