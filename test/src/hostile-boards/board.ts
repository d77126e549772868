/** A board at a hostile relay, whatever engine runs its agent. */
import { makeToken } from "@blindrelay/protocol";
import { isForward, type Version } from "@blindrelay/protocol/crypto";
import { OTHER_TOKEN } from "../adversary/device.ts";
import type { Stage } from "../adversary/stage.ts";
import type { DeviceUnderAttack } from "../adversary/surroundings.ts";
import { DEAD_NETWORK, type Hardware, type Identity, type MakeHardware } from "./hardware.ts";

const RELAY_TOKEN = makeToken("agent", new Uint8Array(32));

export interface BoardOptions {
  readonly name: string;
  readonly version: Version;
  readonly seed: number;
  readonly makeHardware: MakeHardware;
}

export class AttackedBoard implements DeviceUnderAttack {
  readonly isAgent = true;
  readonly name: string;
  readonly version: Version;
  agentToken = "";
  private readonly stage: Stage;
  private readonly seed: number;
  private readonly hardware: Hardware;
  private tokens = 0;
  private seeds = 0;
  private emitted = 0;

  constructor(stage: Stage, options: BoardOptions) {
    this.stage = stage;
    this.name = options.name;
    this.version = options.version;
    this.seed = options.seed;
    this.hardware = options.makeHardware({
      timer: stage.makeTimer(() => true),
      executed: (marker) => stage.calls.executed(this.name, marker),
    });
  }

  /**
   * Power on; if the boot count does not permit a start, the board is provisioned with a new
   * secret.
   */
  boot(): void {
    const { hardware } = this;
    hardware.powerOn(this.stage.relay.port(this));
    try {
      if (this.tokens === 0) this.renewToken();
      hardware.start(this.identity);
    } catch {
      this.renewToken();
      hardware.start(this.identity);
    }
    this.stage.relay.pump();
  }

  powerOff(): void {
    this.hardware.powerOff();
    this.stage.relay.vanish(this);
  }

  restart(): void {
    this.powerOff();
    this.boot();
  }

  restartWithCut(step: number): void {
    this.powerOff();
    this.hardware.startWithCut(this.identity, step);
    this.boot();
  }

  loseMedium(): void {
    this.powerOff();
    this.hardware.eraseFlash();
    this.boot();
  }

  undoRotation(): void {
    this.powerOff();
    const { hardware, identity } = this;
    hardware.powerOn(DEAD_NETWORK);
    this.provision({ ...identity, agentToken: OTHER_TOKEN });
    this.provision(identity);
    hardware.powerOff();
    this.boot();
  }

  damageSlot(slot: number, text: string | null): void {
    this.powerOff();
    this.hardware.damageSlot(slot, text === null);
    this.boot();
  }

  emit(): void {
    this.emitted++;
    this.hardware.emit("tick", { from: this.name, number: this.emitted });
    this.stage.relay.pump();
  }

  end(): Promise<void> {
    return this.hardware.end();
  }

  private get identity(): Identity {
    const { name: agentId, agentToken, version } = this;
    return { agentId, relayToken: RELAY_TOKEN, agentToken, version };
  }

  private provision(identity: Identity): void {
    this.seeds++;
    const bytes = Buffer.alloc(32, this.seeds);
    const seed = isForward(this.version) ? bytes.toString("base64url") : undefined;
    this.hardware.provision({ ...identity, seed });
  }

  private renewToken(): void {
    this.tokens++;
    const bytes = new Uint8Array(32).fill(this.tokens);
    bytes[0] = this.seed;
    this.agentToken = makeToken("e2e", bytes);
    this.provision(this.identity);
    this.stage.tokenChanged(this);
  }
}
