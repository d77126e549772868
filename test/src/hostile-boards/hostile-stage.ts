/**
 * Boards that run an agent as it is built for them, people with the client's SDK, and between them
 * the malicious relay of ../adversary, on one virtual clock. The sessions inside an engine cannot
 * be examined, so the checks cover what people may rely on (CallOracle), and what is sent on the
 * wire.
 */
import { ClientCore } from "@blindrelay/client-sdk/testing";
import type { Version } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { Person } from "../adversary/person.ts";
import type { Captured } from "../adversary/relay.ts";
import { Stage } from "../adversary/stage.ts";
import { AttackedBoard } from "./board.ts";
import type { MakeHardware } from "./hardware.ts";

/** For everything that a board does about one message. */
const TURNS_MS = 1;

export class HostileStage extends Stage {
  readonly devices: readonly AttackedBoard[];
  readonly people: readonly Person[];
  /** Texts of the boards' packets, by everything that key and nonce are made from. */
  private readonly sealed = new Map<string, string>();

  /** `versions`: of its two boards. */
  constructor(
    makeHardware: MakeHardware,
    seed: number,
    versions: readonly [Version, Version] = ["1", "2"],
  ) {
    super();
    this.relay.onCaptured = (captured) => this.checkNonce(captured);
    const board = (name: string, version: Version, i: number): AttackedBoard =>
      new AttackedBoard(this, { name, version, makeHardware, seed: seed * 8 + i });
    this.devices = [board("pump", versions[0], 0), board("lamp", versions[1], 1)];
    this.people = ["ada", "bob"].map(
      (name, i) =>
        new Person(this, { name, seed: seed * 1000 + i, ClientCore, suite: nodeSuite() }),
    );
    for (const device of this.devices) {
      this.relay.addAgent(device);
      device.boot();
    }
  }

  async end(): Promise<void> {
    for (const device of this.devices) {
      device.powerOff();
      await device.end();
    }
  }

  /** A board answers in turns of its own, so it gets time for them. */
  protected override reach(act: () => void): void {
    super.reach(act);
    this.timer.advance(TURNS_MS);
  }

  private checkNonce({ from, packet, text }: Captured): void {
    if (!from.isAgent) return;
    const nonce = `${from.name} ${packet.v} ${packet.sid} ${packet.seq}`;
    const before = this.sealed.get(nonce);
    if (before !== undefined && before !== text) {
      this.violate(`${from.name} sealed twice with one nonce: ${before} and ${text}`);
    }
    this.sealed.set(nonce, text);
  }
}
