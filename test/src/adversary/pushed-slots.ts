/**
 * The programs of a device that accepts pushes, and what must hold whatever the relay does:
 *
 * - the running program was sent completely and unchanged by somebody who has the secret;
 * - a trial runs once, and only if its sender started it;
 * - a kept program was confirmed by its sender; until then the previous one remains valid.
 *
 * Programs here are strings. One that contains "throws" cannot be started.
 */
import { createHash } from "node:crypto";
import type { AgentCore, TimerPort } from "@blindrelay/agent-sdk";
import type { CuttableStorage } from "@blindrelay/agent-sdk/memory";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import type { Build } from "./build.ts";

export const FLASHED = "the program that was flashed";
const ROOM = 2_000;
/** The answer is sent first. */
const RESTART_MS = 500;

export const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
export const idOf = (text: string): string => sha256(text).slice(0, 16);

/** What people requested of one device. */
export interface Wishes {
  readonly sent: Set<string>;
  /** Ids. */
  readonly started: Set<string>;
  readonly confirmed: Set<string>;
}

export interface PushedOptions {
  readonly build: Build;
  readonly name: string;
  violate(what: string): void;
  restart(): void;
}

export class PushedSlots {
  readonly wishes: Wishes = { sent: new Set(), started: new Set(), confirmed: new Set() };
  private readonly options: PushedOptions;
  private slots: (string | null)[] = [FLASHED, null];
  private good = FLASHED;
  private tried: string | null = null;

  constructor(options: PushedOptions) {
    this.options = options;
  }

  /** The running program; "" while a program that throws is started. */
  running = FLASHED;

  /** A flash that was erased and flashed by hand again. */
  erase(): void {
    this.slots = [FLASHED, null];
    this.good = FLASHED;
    this.tried = null;
  }

  /** A start, before anything is sent. */
  boot(core: AgentCore, storage: CuttableStorage, timer: TimerPort): void {
    const { push } = this.options.build;
    const state = push.startPush(storage);
    const { trial } = state;
    const running = this.slots[push.slotOf(state)] ?? "nothing";
    this.judge(running, trial === null ? null : trial.id);
    let onTrial = trial !== null;
    const giveUp = (reason: string): void => {
      onTrial = false;
      push.failTrial(storage, reason);
      this.options.restart();
    };
    if (trial !== null) {
      timer.set(trial.seconds * 1000, () => onTrial && giveUp("not confirmed"));
      if (running.includes("throws")) timer.set(1, () => onTrial && giveUp("it throws"));
    }
    const transfer = push.newTransfer();
    core.dispatcher.add(push.PUSH_METHOD, (params) =>
      push.answerPush(
        {
          key: null,
          agentId: core.agent.id,
          suite: nodeSuite(),
          storage,
          maxPlaintext: 384,
          room: () => ROOM,
          erase: (slot) => {
            this.slots[slot] = null;
          },
          write: (slot, at, _size, part) => {
            const before = this.slots[slot] ?? "";
            this.slots[slot] = before.slice(0, at) + Buffer.from(part).toString("latin1");
          },
          sha256: (slot) => sha256(this.slots[slot] ?? ""),
          restart: () => timer.set(RESTART_MS, () => this.options.restart()),
          onTrial,
          hasWatchdog: true,
          confirmed: () => {
            onTrial = false;
            this.good = running;
          },
        },
        transfer,
        params,
      ),
    );
  }

  private judge(running: string, trial: string | null): void {
    const { name, violate } = this.options;
    const { sent, started, confirmed } = this.wishes;
    this.running = running;
    if (running !== FLASHED && !sent.has(running)) {
      violate(`${name} runs what nobody pushed: ${running}`);
    } else if (trial === null) {
      if (running !== this.good)
        violate(`${name} runs ${running}, not ${this.good}, which is good`);
      if (running !== FLASHED && !confirmed.has(idOf(running))) {
        violate(`${name} keeps what nobody confirmed: ${running}`);
      }
    } else {
      if (trial !== idOf(running)) violate(`${name} tries ${running} as ${trial}`);
      if (!started.has(trial)) violate(`${name} tries what nobody started: ${running}`);
      if (this.tried === trial) violate(`${name} tries ${running} again after it failed`);
    }
    this.tried = trial;
  }
}
