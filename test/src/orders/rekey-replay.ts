/**
 * Plays a trace of protocol/models/rekey.m on the code: the device is the real one, on a medium
 * that loses writes and power as the trace says; the keyring here keeps the rules of the model's
 * caller. What the rules forbid does not happen; the invariants are looked at after each step.
 */
import { provisionBootCount } from "@blindrelay/agent-sdk";
import { MemoryStorage, PowerCut } from "@blindrelay/agent-sdk/memory";
import {
  askRekey,
  opens,
  type RekeyedDevice,
  startRekeyed,
  storedSecret,
  tenMinutesLater,
} from "@blindrelay/agent-sdk/testing/rekeyed-device";
import { AGENT_TOKEN, Client } from "@blindrelay/agent-sdk/testing/world";
import { makeToken } from "@blindrelay/protocol";
import { toHex } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import type { Step } from "./murphi.ts";

const suite = nodeSuite();
/** Older than this, a call is for a device that has forgotten its trial. */
const OLD = 2;

/** A write of the boot slots: it is kept, or the medium loses it and says nothing. */
type Fate = "kept" | "lost";

class Medium extends MemoryStorage {
  /** Of the next writes of the boot slots; then the power goes if `cuts`. */
  fates: Fate[] = [];
  cuts = false;
  /** It went: whatever runs on has no power. */
  isCut = false;

  copy(): MemoryStorage {
    const copy = new MemoryStorage();
    for (const name of this.names()) copy.write(name, this.read(name) ?? "");
    return copy;
  }

  override write(name: string, text: string): void {
    if (!name.startsWith("boot.")) return super.write(name, text);
    const fate = this.fates.shift() ?? (this.cuts ? null : "kept");
    if (this.isCut) throw new PowerCut();
    if (fate === "kept") return super.write(name, text);
    if (fate === "lost") return;
    super.write(name, "");
    this.isCut = true;
    throw new PowerCut();
  }
}

/** What happens to the writes that begin with the step at `from`. */
const fatesAfter = (steps: readonly Step[], from: number): Pick<Medium, "fates" | "cuts"> => {
  const fates: Fate[] = [];
  for (const { rule, parameters } of steps.slice(from + 1)) {
    if (rule === "cut") return { fates, cuts: fates.length < 2 };
    if (rule === "start" || rule === "callArrives") break;
    if (rule === "written") fates.push(parameters.lost === 1 ? "lost" : "kept");
  }
  return { fates, cuts: false };
};

export class Replay {
  /** What the invariants of the model say of the code; empty: they hold. */
  readonly broken: string[] = [];
  private readonly medium = new Medium();
  private device: RekeyedDevice | null = null;
  /** Since the pending secret was accepted; null: it was not. */
  private starts: number | null = null;
  private readonly used = new Set<string>();
  private made = 0;
  // The keyring and its user.
  private current = AGENT_TOKEN;
  private pending: string | null = null;
  private dropped: string | null = null;
  private age = 0;
  private calling = false;
  private answered = false;
  private denied = false;
  /** First packets of openings that were answered. */
  private packets: { readonly client: Client; readonly text: string; readonly life: object }[] = [];

  constructor(steps: readonly Step[]) {
    provisionBootCount(this.medium, suite, AGENT_TOKEN, new Uint8Array(32).fill(0x5e));
    steps.forEach(({ rule }, at) => {
      const turn = this.turns[rule];
      Object.assign(this.medium, fatesAfter(steps, at));
      turn?.();
      if (this.medium.isCut) this.turns.cut?.();
      Object.assign(this.medium, { fates: [], cuts: false, isCut: false });
      this.check(`${at} ${rule}`);
    });
  }

  private readonly turns: { readonly [rule: string]: () => void } = {
    start: () => {
      this.device ??= startRekeyed(this.medium, {
        made: ({ seed }) => this.use(seed as Uint8Array),
      });
      if (this.device !== null && this.starts !== null) this.starts++;
    },
    cut: () => {
      this.device = null;
      this.calling = false;
    },
    tenMinutes: () => this.device && tenMinutesLater(this.device),
    call: () => {
      if (this.pending !== null) return;
      this.made++;
      this.pending = makeToken("e2e", new Uint8Array(32).fill(this.made));
      Object.assign(this, { age: 0, calling: true, answered: false, denied: false, packets: [] });
      this.starts = null;
    },
    wait: () => {
      this.age++;
      this.calling = false;
    },
    callArrives: () => {
      if (this.device === null || !this.calling || this.pending === null) return;
      this.calling = false;
      const params = { secret: this.pending, id: `${this.made}` };
      if (askRekey(this.device, params, this.current)?.result !== undefined) this.starts = 0;
    },
    open: () => {
      if (this.device === null || this.pending === null) return;
      const { world } = this.device;
      const client = new Client(world, "bare", this.pending);
      const [opening] = client.session.open(world.timer.now());
      const seen = world.link().texts.length;
      if (opening?.kind === "send") world.say(opening.text);
      const answer = world.link().texts.slice(seen).at(-1);
      if (answer === undefined) return;
      const [first] = client.session.receive(answer, world.timer.now());
      if (first?.kind === "send") this.packets.push({ client, text: first.text, life: world });
    },
    packetArrives: () => {
      const packet = this.packets.shift();
      if (packet === undefined || this.device?.world !== packet.life) return;
      this.device.world.say(packet.text);
      packet.client.pump();
      if (packet.client.session.state === "open") this.answered = true;
    },
    answered: () => {
      if (!this.answered || this.pending === null) return;
      this.dropped = this.current;
      this.current = this.pending;
      this.pending = null;
      this.answered = false;
      this.starts = null;
    },
    ask: () => {
      if (this.device === null || this.pending === null || this.age < OLD) return;
      const said = askRekey(this.device, {}, this.current);
      if (said?.result?.trial === null) this.denied = true;
    },
    denied: () => {
      if (!this.denied) return;
      this.pending = null;
      this.denied = false;
    },
  };

  private use(seed: Uint8Array): void {
    const text = toHex(seed);
    if (this.used.has(text)) this.broken.push("a start is made twice");
    this.used.add(text);
  }

  private check(where: string): void {
    const breaks = (what: string) => this.broken.push(`${where}: ${what}`);
    const stored = storedSecret(this.medium.copy());
    if (stored !== this.current && stored !== this.pending) breaks("the keyring lacks the secret");
    const slots = ["boot.0", "boot.1"].map((name) => this.medium.read(name) ?? "").join();
    for (const seed of this.used) if (slots.includes(seed)) breaks("a used seed is on the medium");
    const next = startRekeyed(this.medium.copy());
    if (next === null) {
      breaks("the device does not start");
      return;
    }
    if (this.dropped !== null && opens(next, this.dropped)) breaks("a dropped secret opens");
    const isOver = this.starts !== null && this.starts >= 2 && !this.answered;
    if (isOver && opens(next, this.pending as string)) breaks("a trial outlives a second start");
  }
}
