/**
 * Several `agent rekey` for one device at once, whose messages are lost or late and which are
 * killed, beside rotations that the relay refuses: the secret that the device answers to is always
 * one that the profile holds.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededRandom } from "@blindrelay/agent-sdk/memory";
import { CallError, type Client } from "@blindrelay/client-sdk";
import { Failure } from "@blindrelay/protocol/command-line";
import { afterAll, afterEach, expect, it, vi } from "vitest";
import { type Key, type Profile, readProfile, writeProfile } from "../config/profile.ts";
import { Settings } from "../config/settings.ts";
import { dropPendingKey, keepPendingKey, keepProvenKey, makeKey, replaceKey } from "./account.ts";
import { presentSecret, rekeyAgent } from "./rekey.ts";

const folder = mkdtempSync(join(tmpdir(), "blindrelay-sent-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(() => vi.useRealTimers());

const ID = "pump-7";
const MINUTES = 60_000;
/** No request is executed that is older, and nobody waits longer for an answer. */
const EXPIRES_MS = 30_000;

/** A device, and a relay that delivers when it likes. */
class World {
  readonly settings: () => Settings;
  token: string;
  takesNone = false;
  trial: { readonly id: string; readonly token: string; readonly at: number } | null = null;
  private readonly path: string;
  private readonly below: (n: number) => number;
  private waiting: (() => void)[] = [];

  constructor(name: string, below: (n: number) => number) {
    const config = join(folder, name);
    this.path = join(config, "default.json");
    this.below = below;
    const key = makeKey("1");
    this.token = key.agent_token;
    writeProfile(this.path, {
      url: "https://relay.example",
      username: "ada",
      keyring: { [ID]: key },
    });
    this.settings = () => new Settings({ BLINDRELAY_CONFIG_DIR: config }, "default");
  }

  get profile(): Profile {
    return readProfile(this.path, () => "") as Profile;
  }

  get held(): (string | undefined)[] {
    const { keyring, pending } = this.profile;
    return [keyring[ID]?.agent_token, pending?.[ID]?.agent_token];
  }

  readonly client = {
    agent: (_id: string, token: string) => ({
      call: async (method: string, params?: { secret?: string; id?: string }) => {
        const at = Date.now();
        await this.turn();
        if (Date.now() - (this.trial?.at ?? 0) > 10 * MINUTES) this.trial = null;
        const isLost = this.below(4) === 0 || Date.now() - at > EXPIRES_MS;
        if (isLost || (token !== this.token && token !== this.trial?.token))
          throw new CallError("TIMED_OUT", "no answer");
        const answer = this.answer(token, method, params);
        await this.turn();
        if (this.below(4) === 0 || Date.now() - at > EXPIRES_MS)
          throw new CallError("OUTCOME_UNKNOWN", "no answer");
        return answer;
      },
    }),
  } as unknown as Client;

  private answer(token: string, method: string, params?: { secret?: string; id?: string }) {
    if (token === this.trial?.token) {
      this.token = token;
      this.trial = null;
    }
    if (method === "system.ping") return null;
    if (this.takesNone) {
      const remote = { code: -32_601, message: "unknown method" };
      throw new CallError("REMOTE", "unknown method", { remote });
    }
    const { secret, id } = params ?? {};
    if (secret === undefined || id === undefined)
      return { serial: 0, trial: this.trial?.id ?? null };
    if (this.trial !== null && (this.trial.id !== id || this.trial.token !== secret))
      throw new CallError("REMOTE", "another secret is on trial");
    this.trial ??= { id, token: secret, at: Date.now() };
    return { id, expires_in: 600 };
  }

  private turn(): Promise<void> {
    return new Promise((done) => this.waiting.push(done));
  }

  /** With --no-rekey; what is on its way is lost. */
  restart(): void {
    this.takesNone = true;
    this.waiting = [];
  }

  /** A rotation of its tokens, which the relay refuses when its turn has come. */
  async rotate(): Promise<void> {
    const settings = this.settings();
    let key: Key;
    try {
      key = keepPendingKey(settings, ID);
    } catch (error) {
      expect(error).toBeInstanceOf(Failure);
      return;
    }
    await this.turn();
    dropPendingKey(settings, ID, key);
  }

  /** One message arrives; a killed command's never does. False: nobody waits. */
  async step(): Promise<boolean> {
    const [next] = this.waiting.splice(this.below(this.waiting.length), 1);
    if (next !== undefined && this.below(12) > 0) next();
    // What it leads to is a chain of promises and of files.
    await new Promise(setImmediate);
    return next !== undefined;
  }
}

it("never loses the secret that the device has, in any order", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  let renewed = 0;
  for (let seed = 1; seed <= 100; seed++) {
    const random = seededRandom(seed);
    const below = (n: number): number => (random(1)[0] as number) % n;
    const world = new World(`seed-${seed}`, below);
    const first = world.token;
    const begin = (): void => {
      const rekeying = rekeyAgent(world.client, world.settings(), ID, null);
      rekeying.catch((error) => expect(error, `seed ${seed}`).toBeInstanceOf(Failure));
    };
    for (let left = 12; left > 0; ) {
      if ((await world.step()) && below(5) > 0) {
        expect(world.held, `seed ${seed}`).toContain(world.token);
        if (below(4) === 0) vi.setSystemTime(Date.now() + below(12) * MINUTES);
      } else {
        if (below(3) === 0) void world.rotate();
        begin();
        left--;
      }
    }
    if (world.token !== first) renewed++;
  }
  expect(renewed).toBeGreaterThan(40);
});

/** Everything arrives, in order. */
const ordered = (n: number): number => Math.min(1, n - 1);

it("is not replaced by a rotation, and comes back when a board could not be provisioned", async () => {
  const world = new World("others", ordered);
  const { client } = world;
  const rekeying = rekeyAgent(client, world.settings(), ID, null);
  rekeying.catch(() => undefined);
  // The question of its trial is answered, and the new secret is on its way.
  for (let step = 0; step < 2; step++) await world.step();
  const [old, sent] = world.held;
  expect(sent).toBeDefined();
  expect(() => keepPendingKey(world.settings(), ID)).toThrow(/agent rekey pump-7/);
  const undo = replaceKey(world.settings(), ID, makeKey("1"));
  expect(world.held).not.toContain(sent);
  const provisioned = world.held;
  const late = { agent_token: sent as string, packet_version: "1" };
  keepProvenKey(world.settings(), ID, late, old as string);
  expect(world.held).toEqual(provisioned);
  undo();
  expect(world.held).toEqual([old, sent]);
});

it("is given up when a device that takes none any more must have forgotten it", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const world = new World("none", ordered);
  rekeyAgent(world.client, world.settings(), ID, null).catch(() => undefined);
  // Before it is sent.
  for (let step = 0; step < 2; step++) await world.step();
  const [old, sent] = world.held;
  world.restart();
  for (const [minutes, left] of [
    [29, sent],
    [2, undefined],
  ] as const) {
    vi.setSystemTime(Date.now() + minutes * MINUTES);
    const outcome = rekeyAgent(world.client, world.settings(), ID, null).catch((error) => error);
    while (await world.step());
    expect((await outcome).message).toContain("--no-rekey");
    expect(world.held).toEqual([old, left]);
  }
});

it("is used by whoever calls the device next", async () => {
  const world = new World("next", ordered);
  const rekeying = rekeyAgent(world.client, world.settings(), ID, null);
  rekeying.catch(() => undefined);
  for (let step = 0; step < 3; step++) await world.step();
  const settings = world.settings();
  const secret = settings.secretOf(ID);
  const present = presentSecret(world.client, settings, ID, secret);
  while (await world.step());
  expect((await present).agentToken).toBe(world.token);
  expect(world.token).not.toBe(secret.agentToken);
  expect(world.profile.keyring[ID]?.agent_token).toBe(world.token);
});
