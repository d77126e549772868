/** A board in a siege: flash that survives, a power switch, and an agent in XS from one to the next. */

import type { TimerPort } from "@blindrelay/agent-sdk";
import { makeToken } from "@blindrelay/protocol";
import { linkWire } from "../../../agent-sdk/src/testing/link-wire.ts";
import { FakePreference } from "../../../agent-sdk/src/testing/moddable-sdk.ts";
import { XsDevice } from "../../../agent-sdk/src/testing/xs-device.ts";
import type { Relay } from "../adversary/relay.ts";

const MAX_COMPUTE = 2e8;

/** Flash whose power goes at a certain write; ESP32 erases a value before it writes the new one. */
export class CuttablePreference extends FakePreference {
  /** Writes until the power goes; below 0: never. */
  private left = -1;
  private erases = false;

  cutAfter(writes: number, erases: boolean): void {
    this.left = writes;
    this.erases = erases;
  }

  powerIsBack(): void {
    this.left = -1;
  }

  override set(domain: string, key: string, value: ArrayBuffer): void {
    if (this.left === 0) {
      if (this.erases) this.values.delete(`${domain}/${key}`);
      this.erases = false;
      throw new Error("no power");
    }
    if (this.left > 0) this.left--;
    super.set(domain, key, value);
  }
}

export interface BoardOptions {
  readonly name: string;
  readonly version: "1" | "2";
  readonly seed: number;
  readonly engine: string;
  readonly script: string;
  readonly relay: Relay;
  readonly timer: TimerPort;
  /** The handler ran, for a call with this marker. */
  readonly executed: (marker: unknown) => void;
  /** It was given a new secret. */
  readonly tokenChanged: () => void;
}

export class Board {
  readonly isAgent = true;
  readonly name: string;
  readonly version: "1" | "2";
  agentToken = "";
  device: XsDevice | null = null;
  /** Lives so far that ended, to be waited for. */
  readonly ends: Promise<void>[] = [];
  private readonly options: BoardOptions;
  private preference = new CuttablePreference();
  private tokens = 0;
  private emitted = 0;

  constructor(options: BoardOptions) {
    this.options = options;
    this.name = options.name;
    this.version = options.version;
  }

  /** Power on; where the count does not let it start, somebody provisions it with a new secret. */
  boot(): void {
    const { engine, script, relay, timer, executed } = this.options;
    const device = new XsDevice({
      engine,
      script,
      timer,
      connect: linkWire(relay.port(this)),
      preference: this.preference,
      maxCompute: MAX_COMPUTE,
      log: (_level, message, fields) => {
        if (message === "executed") executed((fields as { readonly marker?: unknown }).marker);
      },
    });
    this.device = device;
    const start = (): void => {
      const { name, agentToken, version } = this;
      const relayToken = makeToken("agent", new Uint8Array(32));
      const who = { agentId: name, relayToken, agentToken, packetVersion: version };
      device.start({ ...who, url: "ws://relay.test/wss" }, "siege");
    };
    try {
      if (this.tokens === 0) this.renewToken(device);
      start();
    } catch {
      this.renewToken(device);
      start();
    }
    relay.pump();
  }

  powerOff(): void {
    if (this.device !== null) this.ends.push(this.device.end());
    this.device = null;
    this.options.relay.vanish(this);
  }

  restart(): void {
    this.powerOff();
    this.boot();
  }

  /** Off, on with the power going again at some write of the boot count, and on. */
  restartWithCut(step: number): void {
    this.powerOff();
    this.preference.cutAfter(step % 7, step % 2 === 0);
    const { engine, script, timer } = this.options;
    const dying = new XsDevice({
      engine,
      script,
      timer,
      connect: () => ({ write: () => {}, end: () => {} }),
      preference: this.preference,
      maxCompute: MAX_COMPUTE,
    });
    try {
      const relayToken = makeToken("agent", new Uint8Array(32));
      const who = { agentId: this.name, relayToken, agentToken: this.agentToken };
      dying.start({ ...who, url: "ws://relay.test/wss" }, "siege");
    } catch {
      // As often as not the power went inside.
    }
    this.ends.push(dying.end());
    this.preference.powerIsBack();
    this.boot();
  }

  loseMedium(): void {
    this.powerOff();
    this.preference = new CuttablePreference();
    this.boot();
  }

  /** One of the two slots comes back damaged; null: it is gone. */
  damageSlot(slot: number, text: string | null): void {
    this.powerOff();
    for (const key of [...this.preference.values.keys()]) {
      if (!key.includes(`boot.${slot}.`)) continue;
      if (text === null) this.preference.values.delete(key);
      else this.preference.values.set(key, new Uint8Array([0, 255]).buffer);
    }
    this.boot();
  }

  /** To every session held. */
  emit(): void {
    this.emitted++;
    this.device?.emit("tick", { from: this.name, number: this.emitted });
    this.options.relay.pump();
  }

  private renewToken(device: XsDevice): void {
    this.tokens++;
    const bytes = new Uint8Array(32).fill(this.tokens);
    bytes[0] = this.options.seed;
    this.agentToken = makeToken("e2e", bytes);
    device.provision(this.agentToken);
    this.options.tokenChanged();
  }
}
