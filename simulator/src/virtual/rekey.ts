/**
 * Owners who give devices of the virtual world new secrets over the air, as the command
 * `blindrelay agent rekey` does it: an owner keeps the new secret from before it is sent, tries it
 * first, and tells all other clients of the device once it has answered under it. Each fault
 * `device.rekey` is another owner, with a keyring of its own; an interrupted one comes back until
 * it is done.
 */

import { hash } from "node:crypto";
import type { Client } from "@blindrelay/client-sdk";
import { hasSecret, nextSerial, secretState, sendSecret } from "@blindrelay/client-sdk/rekey";
import { makeToken } from "@blindrelay/protocol";
import { rekeyProof, toBase64url } from "@blindrelay/protocol/crypto";
import { Stream } from "../base/random-streams.ts";
import type { LivenessOracle } from "../oracle/liveness.ts";
import type { OracleName } from "../oracle/names.ts";
import { type ClientWorld, people, sleep, type VirtualClient } from "./client.ts";
import type { Device } from "./device.ts";

/** So many begin within this time. */
const SPREAD_MS = 10_000;
const AGAIN_MS = 5_000;
/** A device that takes none now may have another owner's on trial. */
const REFUSED_MS = 30_000;
/** An owner who is disturbed does not go on for up to this. */
const REST_MS = 8_000;
/** By then a device has forgotten a trial, as the command has it. */
const FORGOTTEN_MS = 15 * 60_000;
const ID_BYTES = 16;
/** Of steps, while the fault lasts. */
const RESTS_PERCENT = 25;
const ENDS_PERCENT = 15;

export interface RekeyWorld extends ClientWorld {
  readonly liveness: LivenessOracle;
  trace(what: string, who: string, text: string): void;
  violate(oracle: OracleName, detail: string): void;
}

/** A secret that an owner has sent, or is about to. */
interface Sent {
  readonly secret: string;
  readonly id: string;
  /** When it was sent last. */
  atMs: number;
}

/** The end of a command in the middle. */
class Interrupted extends Error {}

/** `number`: of this fault in its world. `lastsMs`: owners are interrupted so long. */
export const rekey = (
  world: RekeyWorld,
  number: number,
  devices: readonly Device[],
  lastsMs: number,
): void => {
  const owners = people(world, { kind: "owner", number, net: 20, leaves: true });
  for (const device of devices) {
    void new Owner(world, number, device, owners.of(device.userId), lastsMs).change();
  }
};

class Owner {
  private readonly world: RekeyWorld;
  private readonly device: Device;
  private readonly client: VirtualClient;
  private readonly draws: Stream;
  private readonly calmMs: number;
  private sent: Sent | null = null;

  constructor(
    world: RekeyWorld,
    number: number,
    device: Device,
    client: VirtualClient,
    lastsMs: number,
  ) {
    this.world = world;
    this.device = device;
    this.client = client;
    this.draws = new Stream(`${world.seed}/${device.id}/owner/${number}`);
    this.calmMs = world.clock.nowMs() + lastsMs;
  }

  async change(): Promise<void> {
    const { world, device } = this;
    const { clock } = world;
    await sleep(world, this.draws.below(SPREAD_MS));
    const { configured } = device;
    let [failed, owners] = [0, 0];
    device.changing += 1;
    while (device.configured === configured) {
      const fromUs = clock.nowUs;
      const error = await this.run();
      // It was provisioned with another one meanwhile.
      if (error === null || device.configured !== configured) break;
      const { code, message } = error as { readonly code?: string; readonly message: string };
      if (error instanceof Interrupted) await this.stayAway();
      else if (code === "REMOTE") await sleep(world, REFUSED_MS);
      else {
        // Each of the others may have replaced the secret meanwhile.
        owners = Math.max(owners, device.changing);
        if (world.liveness.wasCalm(fromUs) && ++failed > owners) {
          const why = `${code}: ${message}`;
          world.violate("secrets", `without any fault, ${device.id} has no new secret: ${why}`);
        }
        await sleep(world, AGAIN_MS);
      }
    }
    device.changing -= 1;
    device.changedUs = clock.nowUs;
  }

  /** One command; resolves with what ended it early. */
  private run(): Promise<unknown> {
    const { client, device } = this;
    return new Promise((resolve) => {
      client.use(
        device,
        () => this.steps(client.sdk as Client),
        (_, error) => resolve(error),
      );
    });
  }

  private async steps(sdk: Client): Promise<void> {
    const { device, world } = this;
    const handle = (token: string) => sdk.agent(device.id, token, device.agentOptions);
    const kept = device.agentToken;
    const isProven = async ({ secret }: Sent): Promise<boolean> => {
      await this.pause();
      if (!(await hasSecret(handle(secret)))) return false;
      device.proven(secret, kept);
      world.trace("rekeyed", device.id, "");
      return true;
    };
    if (this.sent !== null && (await isProven(this.sent))) return;
    await this.pause();
    const present = handle(kept);
    const { trial, serial } = await secretState(present);
    const nowMs = world.clock.nowMs();
    if (this.sent !== null && trial === null && nowMs - this.sent.atMs > FORGOTTEN_MS) {
      device.secrets.release(this.sent.secret);
      this.sent = null;
    }
    this.sent ??= this.draw();
    this.sent.atMs = nowMs;
    device.secrets.hold(this.sent.secret);
    await this.pause();
    const { secret, id } = this.sent;
    await sendSecret(present, { secret, id, ...this.proof(secret, serial) });
    if (await isProven(this.sent)) return;
    throw Object.assign(new Error("no answer under the new secret"), { code: "TIMED_OUT" });
  }

  /** `last`: the serial that the device says. */
  private proof(secret: string, last: number): { serial?: number; proof?: string } {
    const { world, device } = this;
    const { pushKey, id } = device;
    if (pushKey === null) return {};
    const serial = nextSerial(id, last, world.clock.epochMs + world.clock.nowMs());
    const proof = rekeyProof(world.suite, pushKey, id, serial, hash("sha256", secret));
    return { serial, proof };
  }

  private draw(): Sent {
    const { draws } = this;
    const id = toBase64url(draws.bytes(ID_BYTES));
    return { secret: makeToken("e2e", draws.bytes(32)), id, atMs: 0 };
  }

  /** Often until the fault is over, which may be after the device has given up the trial. */
  private stayAway(): Promise<void> {
    const { world, draws, calmMs } = this;
    const mostMs = Math.max(0, calmMs - world.clock.nowMs());
    return sleep(world, draws.below(2) === 0 ? mostMs : draws.below(mostMs + 1));
  }

  /** Between two steps: perhaps a rest, perhaps the end of this command. */
  private async pause(): Promise<void> {
    const { world, draws } = this;
    if (world.clock.nowMs() >= this.calmMs) return;
    const lot = draws.below(100);
    if (lot < ENDS_PERCENT) throw new Interrupted();
    if (lot < ENDS_PERCENT + RESTS_PERCENT) await sleep(world, draws.below(REST_MS));
  }
}
