/**
 * What every world of the attacker has: a virtual clock, the relay, people and boards around it,
 * what people may rely on, and the final check, with an honest relay, that every call is answered.
 * The moves use only this, whatever runs the agents.
 */
import type { TimerPort } from "@blindrelay/agent-sdk";
import { ManualTimer } from "@blindrelay/agent-sdk/memory";
import { CallOracle, type CallRules } from "@blindrelay/simulator/testing";
import type { Person } from "./person.ts";
import { MaliciousRelay } from "./relay.ts";
import type { DeviceUnderAttack, Surroundings } from "./surroundings.ts";

/** The most timers that may fire at one instant; more are an endless loop. */
const TIMERS_AT_ONCE = 1_000;
const PING_EVERY_MS = 30_000;
/**
 * Longer than any back-off after lost links, so that every peer has reconnected when the relay is
 * honest again.
 */
const RECOVERY_MS = 100_000;

/** The device programs here return the call's marker and their own name. */
const RULES: CallRules = {
  judge: (call, result) => {
    const { echo, from } = (result ?? {}) as { echo?: unknown; from?: unknown };
    const right = echo === call.marker && from === call.agentId;
    return right ? null : `got ${JSON.stringify(result)}`;
  },
  // Our agents and this relay give no reason for any of these.
  impossible: ["REMOTE", "BAD_ANSWER", "BAD_ARGUMENT", "TOO_LARGE", "BUSY", "REFUSED"],
};

export abstract class Stage implements Surroundings {
  abstract readonly devices: readonly DeviceUnderAttack[];
  abstract readonly people: readonly Person[];
  readonly timer = new ManualTimer();
  readonly relay = new MaliciousRelay((act) => this.reach(act));
  readonly calls = new CallOracle((what) => this.violate(what), {
    ...RULES,
    nowMs: () => this.timer.now(),
  });
  private readonly found: string[] = [];
  private pingedAt = 0;
  /** The latest instant in which a timer fired, and how many did. */
  private instant = { at: 0, fired: 0 };

  /** Everything that went wrong, oldest first. */
  get violations(): readonly string[] {
    return this.found;
  }

  violate(what: string): void {
    this.found.push(what);
  }

  /** Runs a participant's code: whatever it throws is a violation. */
  attempt(act: () => void): void {
    try {
      act();
    } catch (thrown) {
      this.violate(`exception: ${thrown instanceof Error ? thrown.stack : String(thrown)}`);
    }
  }

  /** A participant's view of the clock, while it is running. */
  makeTimer(alive: () => boolean): TimerPort {
    return {
      now: () => this.timer.now(),
      set: (ms, fn) => {
        if (this.instant.fired > TIMERS_AT_ONCE) return null;
        return this.timer.set(ms, () => {
          if (this.instant.at !== this.timer.now())
            this.instant = { at: this.timer.now(), fired: 0 };
          this.instant.fired++;
          if (this.instant.fired === TIMERS_AT_ONCE) this.violate("timers fire in an endless loop");
          if (alive()) this.attempt(fn);
        });
      },
      clear: (handle) => this.timer.clear(handle),
    };
  }

  /** Lets time pass; links stay up, packets stay where they are. */
  wait(ms: number): void {
    const end = this.timer.now() + ms;
    while (this.timer.now() < end) {
      const step = Math.min(end, this.pingedAt + PING_EVERY_MS) - this.timer.now();
      this.timer.advance(step);
      this.relay.pump();
      if (this.timer.now() - this.pingedAt < PING_EVERY_MS) continue;
      this.pingedAt = this.timer.now();
      this.relay.ping();
    }
  }

  /** Lets time pass with an honest relay, which reads its sockets every `stepMs`. */
  behave(ms: number, stepMs = 250): void {
    const end = this.timer.now() + ms;
    this.relay.flow();
    while (this.timer.now() < end) {
      this.wait(Math.min(stepMs, end - this.timer.now()));
      this.relay.flow();
    }
  }

  /** A board was given a new secret; its people get it too. */
  tokenChanged(board: DeviceUnderAttack): void {
    for (const person of this.people) person.meet(board);
  }

  /** The attacker gives up: every call is now answered. */
  mustRecover(): void {
    for (const held of [...this.relay.waiting]) this.relay.drop(held);
    this.behave(RECOVERY_MS, 2_000);
    const calls = this.people.flatMap((person) =>
      this.devices.map((device) => person.call(device, "now", true, 30_000)),
    );
    for (let i = 0; i < 120 && calls.some((call) => call.outcome === null); i++) this.behave(250);
    for (const call of calls) {
      if (call.outcome?.ok) continue;
      const how = call.outcome === null ? "nothing" : call.outcome.error.code;
      this.violate(`honest again, yet ${call.client} calls ${call.agentId} and gets ${how}`);
    }
    this.wait(31_000);
    for (const call of this.calls.pending) this.violate(`call ${call.marker} never ended`);
  }

  /** Runs a participant's code for an event of its link. */
  protected reach(act: () => void): void {
    this.attempt(act);
  }
}
