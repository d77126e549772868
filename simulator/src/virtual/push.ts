/** A person's push of a program to devices of the virtual world, as `blindrelay push` does it. */
import { createHash } from "node:crypto";
import { PUSH_METHOD } from "@blindrelay/agent-sdk/push";
import { type ClientWorld, people, sleep, type VirtualClient } from "./client.ts";
import type { Device } from "./device.ts";

const CALL_MS = 20_000;
/** The answer may be lost in the restart. */
const GLANCE_MS = 5_000;
const PAUSE_MS = 500;
const AGAIN_MS = 2_000;
/** A trial must still answer after this. */
const SETTLE_MS = 3_000;
/** A trial starts within this time, or never: its end must not come long after the fault's. */
const START_MS = 30_000;
/** So many begin within this time. */
const SPREAD_MS = 10_000;
/** The digits that identify a program. */
const ID_LENGTH = 16;

interface State {
  readonly id: string;
  readonly trial: string | null;
  readonly failed: { readonly id: string } | null;
  readonly part: number;
}

/** `number`: of this push in its world. `seconds`: of the trial. */
export const pushTo = (
  world: ClientWorld,
  number: number,
  devices: readonly { readonly device: Device; readonly text: string }[],
  seconds: number,
): void => {
  const pushers = people(world, { kind: "push", number, net: 19, leaves: false });
  for (const [i, { device, text }] of devices.entries()) {
    const client = pushers.of(device.userId);
    world.clock.after(Math.floor((i * SPREAD_MS) / devices.length), () => {
      world.stir();
      void pushOne(world, client, device, Buffer.from(text), seconds);
    });
  }
  const overMs = START_MS + seconds * 1000 + CALL_MS;
  world.clock.after(overMs, () => pushers.stop());
};

const pushOne = async (
  world: ClientWorld,
  client: VirtualClient,
  device: Device,
  bytes: Buffer,
  seconds: number,
): Promise<void> => {
  const { clock } = world;
  const since = clock.nowMs();
  const passed = (): number => clock.nowMs() - since;
  /** Null: it failed, or the device refused. */
  const ask = (params: object, timeoutMs = CALL_MS): Promise<State | null> =>
    new Promise((resolve) => {
      const request = { method: PUSH_METHOD, params, timeoutMs, idempotent: true };
      client.call(device, request, (result, error) =>
        resolve(error === null ? (result as State) : null),
      );
    });
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const id = sha256.slice(0, ID_LENGTH);
  const transfer = async (): Promise<boolean> => {
    const part = (await ask({}))?.part ?? 0;
    const head = { size: bytes.length, sha256, version: "pushed", seconds };
    if (part === 0 || (await ask(head)) === null) return false;
    for (let at = 0; at < bytes.length; at += part) {
      const data = bytes.subarray(at, at + part).toString("base64url");
      if ((await ask({ at, data })) === null) return false;
    }
    return passed() < START_MS;
  };
  while (!(await transfer())) {
    if (passed() >= START_MS) return;
    await sleep(world, AGAIN_MS);
  }
  await ask({ start: true }, GLANCE_MS);
  let seenAt: number | null = null;
  for (const begunAt = passed(); passed() - begunAt < seconds * 1000 + CALL_MS; ) {
    await sleep(world, PAUSE_MS);
    const state = await ask({}, GLANCE_MS);
    if (state?.failed?.id === id || (state?.id === id && state.trial === null)) return;
    if (state?.trial !== id) continue;
    seenAt ??= passed();
    if (passed() - seenAt >= SETTLE_MS) await ask({ confirm: id });
  }
};
