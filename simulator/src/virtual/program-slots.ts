/**
 * What `system.push` has on a simulated device: two slots for programs, the SDK's own record of
 * which one is good, and a trial with its deadline. Slots and record outlive a reboot.
 */
import { hash } from "node:crypto";
import type { AgentCore, StoragePort } from "@blindrelay/agent-sdk";
import {
  answerPush,
  failTrial,
  newTransfer,
  PUSH_METHOD,
  slotOf,
  startPush,
} from "@blindrelay/agent-sdk/push";
import type { Suite } from "@blindrelay/protocol/crypto";
import type { LoadedProgram } from "./program.ts";

/** Enough time to send the answer. */
const RESTART_MS = 500;
/** Bytes of a slot. */
const ROOM = 64 * 1024;

/** What is pushed of a program: its source, or the name of a bundled one. */
export const textOf = ({ source, file }: LoadedProgram): string => (source === "" ? file : source);

/** What the slots need from their device. */
export interface SlotsDevice {
  readonly suite: Suite;
  /** While the device stays on; returns what cancels it. */
  after(ms: number, fn: () => void): () => void;
  /** `reason`: why its trial failed; else "". */
  restart(reason: string): void;
  /** The text of a slot as a program; null: nobody has sent it. */
  programOf(text: string): LoadedProgram | null;
  /** A device that breaks the rules of a trial. */
  violate(detail: string): void;
}

export class ProgramSlots {
  private readonly device: SlotsDevice;
  private readonly flashed: LoadedProgram;
  private slots: [Buffer, Buffer];
  /** The identity of the program that was kept last. */
  private kept = "";
  /** Of the one that somebody asked to keep last, whatever came of it. */
  private wanted = "";
  /** Of the trial that runs or ran last, since programs were sent. */
  private tried = "";
  private cancel = (): void => undefined;
  /** This start runs a trial that has not been confirmed. */
  private onTrial = false;

  constructor(device: SlotsDevice, flashed: LoadedProgram) {
    this.device = device;
    this.flashed = flashed;
    this.slots = [Buffer.from(textOf(flashed)), Buffer.alloc(0)];
  }

  /** A start: the program that it runs. Throws what the storage throws. */
  begin(storage: StoragePort): LoadedProgram {
    const state = startPush(storage);
    const { trial } = state;
    this.onTrial = trial !== null;
    if (trial === null) {
      if (state.id === this.wanted) this.kept = this.wanted;
      if (state.id !== this.kept) this.device.violate(`keeps ${state.id}, which nobody confirmed`);
    } else {
      if (trial.id === this.tried) this.device.violate(`tries ${trial.id} again`);
      this.tried = trial.id;
      const late = `it was not confirmed in ${trial.seconds} s`;
      this.cancel = this.device.after(trial.seconds * 1000, () => this.giveUp(storage, late));
    }
    const program = this.device.programOf(String(this.slots[slotOf(state) as 0 | 1]));
    if (program === null) this.device.violate("runs what nobody has sent");
    return program ?? this.flashed;
  }

  /** Accepts programs from now on. */
  serve(core: AgentCore, storage: StoragePort): void {
    const transfer = newTransfer();
    const port = {
      key: null,
      agentId: core.agent.id,
      suite: this.device.suite,
      storage,
      maxPlaintext: core.maxPlaintext,
      room: () => ROOM,
      erase: (slot: number) => {
        this.slots[slot as 0 | 1] = Buffer.alloc(0);
        this.tried = "";
      },
      write: (slot: number, _at: number, _size: number, part: Uint8Array) => {
        this.slots[slot as 0 | 1] = Buffer.concat([this.slots[slot as 0 | 1], part]);
      },
      sha256: (slot: number) => hash("sha256", this.slots[slot as 0 | 1]),
      restart: () => this.device.after(RESTART_MS, () => this.device.restart("")),
      hasWatchdog: true,
      confirmed: () => {
        this.onTrial = false;
        this.cancel();
      },
    };
    core.dispatcher.add(PUSH_METHOD, (params) => {
      const { confirm } = (params ?? {}) as { readonly confirm?: unknown };
      if (typeof confirm === "string") this.wanted = confirm;
      const answer = answerPush({ ...port, onTrial: this.onTrial }, transfer, params);
      if (typeof confirm === "string") this.kept = confirm;
      return answer;
    });
  }

  /** The running program has failed; true: it was on trial, and the device restarts without it. */
  failed(storage: StoragePort, reason: string): boolean {
    if (this.onTrial) this.giveUp(storage, reason);
    return this.onTrial;
  }

  private giveUp(storage: StoragePort, reason: string): void {
    failTrial(storage, reason);
    this.device.after(0, () => this.device.restart(reason));
  }
}
