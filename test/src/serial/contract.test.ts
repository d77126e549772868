/**
 * Peers written from the contract alone ("A serial port outlives its link"), which know none of the
 * members that our bridge adds to its answers: `port` and `turn` of serial.resume.
 */
import type { SessionStreams } from "@blindrelay/client-sdk";
import type { OutgoingStream } from "@blindrelay/protocol/streams";
import { expect, it } from "vitest";
import { bytes, type LinkedClient, started, World } from "./world.ts";

const CUTS = 10;

/** Cuts the link while bytes are on their way, in both directions. */
const carry = async (
  world: World,
  link: LinkedClient,
  up: Uint8Array,
  isOver: () => boolean,
): Promise<void> => {
  let [said, step, cuts] = [0, 0, 0];
  await world.run(() => {
    if (said < up.length && !world.tty.isPaused) {
      world.tty.says(...up.subarray(said, said + 150));
      said += 150;
    }
    if (++step % 37 === 0 && cuts < CUTS) {
      cuts++;
      link.cut();
    }
    return cuts === CUTS && isOver();
  });
};

it("attach loses and doubles nothing at a bridge that answers with the contract's members only", async () => {
  const world = new World();
  world.answers = (answer) => {
    const { port, turn, ...contract } = answer as Record<string, unknown>;
    return contract;
  };
  world.tty.plug();
  const { remote, link, got, losses } = await started(world);
  const [down, up] = [bytes(60_000, 1), bytes(60_000, 2)];
  remote.write(down);
  await carry(
    world,
    link,
    up,
    () => world.tty.device.length >= down.length && got.length >= up.length,
  );
  expect(Buffer.from(world.tty.device).equals(down)).toBe(true);
  expect(Buffer.from(got).equals(up)).toBe(true);
  expect(losses).toEqual([]);
});

it("a client of the contract only loses and doubles nothing at our bridge", async () => {
  const world = new World();
  world.tty.plug();
  const link = world.client();
  const { agent } = link;
  const [down, up] = [bytes(60_000, 3), bytes(60_000, 4)];
  const got: number[] = [];
  let opening: string | undefined;
  let sent = 0;
  const reads: unknown[][] = [];
  const notices: string[] = [];

  const resume = async (): Promise<void> => {
    const [read, write] = [agent.streamNumber(), agent.streamNumber()];
    const at = got.length;
    let isOver = false;
    const broke = (): void => {
      if (isOver) return;
      isOver = true;
      world.timer.set(20, () => void resume());
    };
    let out: OutgoingStream | null = null;
    const send = (): void => {
      if (out === null || isOver) return;
      while (out.credit > 0 && sent < down.length) sent += out.write(down.subarray(sent));
    };
    let opened: OutgoingStream | null = null;
    let grant = (): void => undefined;
    const open = (streams: SessionStreams): void => {
      streams.onNotice((event) => notices.push(event));
      const incoming = streams.incoming(read, {
        data: (came) => {
          got.push(...came);
          incoming.grant(came.length);
        },
        ended: broke,
      });
      opened = streams.outgoing(write, { writable: send, ended: broke });
      grant = () => incoming.grant(32_768);
    };
    const params = {
      claim: "a-client-of-the-page__",
      ...(opening === undefined ? {} : { opening }),
      read: { stream: read, ...(opening === undefined ? {} : { from: got.length }) },
      write: { stream: write },
    };
    try {
      const answer = await agent.callWithStreams<Record<string, unknown>>(
        "serial.resume",
        params,
        open,
        1_000,
      );
      reads.push([at, answer.read]);
      opening = answer.opening as string;
      sent = answer.written as number;
      out = opened;
      grant();
      send();
    } catch {
      broke();
    }
  };
  void resume();
  await world.run(() => opening !== undefined);
  await carry(
    world,
    link,
    up,
    () => world.tty.device.length >= down.length && got.length >= up.length,
  );
  expect(Buffer.from(world.tty.device).equals(down)).toBe(true);
  expect(Buffer.from(got).equals(up)).toBe(true);
  expect(notices).toEqual([]);
  expect(reads.length).toBeGreaterThan(CUTS / 2);
  for (const [asked, answered] of reads) expect(answered).toBe(asked);
});
