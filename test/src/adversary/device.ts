/**
 * A board: a medium that survives, a power switch, and an agent core for each start. Its randomness
 * is the worst possible: the same bytes after every reset.
 */
import type { AgentCore, AgentPorts } from "@blindrelay/agent-sdk";
import { CuttableStorage, type Medium, seededRandom } from "@blindrelay/agent-sdk/memory";
import { makeToken } from "@blindrelay/protocol";
import type { Suite, Version } from "@blindrelay/protocol/crypto";
import type { Build } from "./build.ts";
import { PushedSlots, type Wishes } from "./pushed-slots.ts";
import type { MaliciousRelay } from "./relay.ts";
import type { DeviceSurroundings } from "./surroundings.ts";
import { observeAgent } from "./taps.ts";

/** Few, so that sessions are also dropped for lack of room. */
export const MAX_SESSIONS = 2;
/** So few that epochs end, and the one before is used. */
const EPOCH_SESSIONS = 2;
const LIMITS = {
  maxSessions: MAX_SESSIONS,
  unheldPerSecond: 200,
  unheldBurst: 400,
  epochSessions: EPOCH_SESSIONS,
};
/** Of no device's secrets, which begin with its seed. */
export const OTHER_TOKEN = makeToken("e2e", new Uint8Array(32).fill(255));
/** A handler that takes this long answers into whatever is left of its session. */
export const SLOW_MS = 700;

export interface DeviceOptions {
  readonly name: string;
  readonly agentToken: string;
  readonly version: Version;
  readonly medium: Medium;
  readonly seed: number;
}

export class Device {
  readonly isAgent = true;
  readonly name: string;
  readonly version: Version;
  agentToken: string;
  core: AgentCore | null = null;
  storage: CuttableStorage;
  readonly slots: PushedSlots;
  private readonly world: DeviceSurroundings;
  private readonly medium: Medium;
  private readonly seed: number;
  /** How often it had to be given a new secret. */
  tokens = 0;
  private emitted = 0;
  private powerOffs: (() => void)[] = [];

  constructor(world: DeviceSurroundings, options: DeviceOptions) {
    this.world = world;
    this.name = options.name;
    this.version = options.version;
    this.agentToken = options.agentToken;
    this.medium = options.medium;
    this.seed = options.seed;
    this.storage = new CuttableStorage(options.medium);
    this.slots = new PushedSlots({
      build: world.build,
      name: options.name,
      violate: (what) => world.violate(what),
      restart: () => this.restart(),
    });
    this.provision(this.agentToken);
  }

  get wishes(): Wishes {
    return this.slots.wishes;
  }

  private get build(): Build {
    return this.world.build;
  }

  private get relay(): MaliciousRelay {
    return this.world.relay;
  }

  /**
   * Power on. If there is no usable boot count, the board is provisioned with a new agent_token, as
   * it requires.
   */
  boot(): void {
    const suite = this.world.makeSuite();
    const raised = this.build.agent.raiseBootCount(this.storage, suite, this.agentToken);
    if (!raised.ok) {
      this.provisionAnew();
      this.boot();
      return;
    }
    observeAgent(suite, this.world.sessions.agent(this.name, MAX_SESSIONS, EPOCH_SESSIONS));
    const ports = this.ports(suite);
    const core = new this.build.agent.AgentCore({
      url: "wss://relay.test/wss",
      agentId: this.name,
      relayToken: makeToken("agent", new Uint8Array(32)),
      agentToken: this.agentToken,
      version: this.version,
      runtime: "adversary",
      sdkVersion: "0",
      bootCount: raised.count,
      deviceRandom: seededRandom(this.seed)(16),
      serialNumber: null,
      ports,
      limits: LIMITS,
    });
    this.core = core;
    core.agent.handle("now", (params) => this.execute(params));
    core.agent.handle("slow", (params) => {
      const result = this.execute(params);
      return {
        // biome-ignore lint/suspicious/noThenProperty: a promise that settles on the world's clock.
        then: (settle: (value: unknown) => void) => core.agent.after(SLOW_MS, () => settle(result)),
      };
    });
    this.slots.boot(core, this.storage, ports.timer);
    core.start();
    this.relay.pump();
  }

  /** Powers off at once: nothing of this start runs or is received again. */
  powerOff(): void {
    for (const off of this.powerOffs) off();
    this.powerOffs = [];
    this.core = null;
    this.relay.vanish(this);
  }

  /**
   * Off, then on, with a power cut in the `step`-th step of the boot-count write; then on. `step`
   * counts from 1; past the last step nothing is cut.
   */
  restartWithCut(step: number): void {
    this.powerOff();
    const dying = this.storage.copy();
    dying.cutAfter(step);
    // The verdict is ignored: the power was cut during the write or right after it.
    this.build.agent.raiseBootCount(dying, this.world.makeSuite(), this.agentToken);
    this.storage = dying.copy();
    this.boot();
  }

  /** Steps of the boot-count write of the next start. */
  bootSteps(): number {
    const trial = this.storage.copy();
    this.build.agent.raiseBootCount(trial, this.world.makeSuite(), this.agentToken);
    return trial.steps;
  }

  restart(): void {
    this.powerOff();
    this.boot();
  }

  /** The medium is empty afterwards, as from a board whose flash was erased. */
  loseMedium(): void {
    this.powerOff();
    this.storage = new CuttableStorage(this.medium);
    this.slots.erase();
    this.boot();
  }

  undoRotation(): void {
    this.powerOff();
    this.provision(OTHER_TOKEN);
    this.provision(this.agentToken);
    this.boot();
  }

  /** Replaces one of the boot count's two slots with `text`; null: it is gone. */
  damageSlot(slot: number, text: string | null): void {
    this.powerOff();
    const left = ["boot.0", "boot.1", "push.0", "push.1"].flatMap((name, i) => {
      const content = i === slot ? text : this.storage.read(name);
      return content === null ? [] : [[name, content] as const];
    });
    this.storage = new CuttableStorage(this.medium, new Map(left));
    this.boot();
  }

  /** An event to every session held. */
  emit(): void {
    this.emitted++;
    this.core?.agent.emit("tick", { from: this.name, number: this.emitted });
    this.relay.pump();
  }

  private execute(params: { readonly marker?: unknown } | undefined): object {
    this.world.calls.executed(this.name, params?.marker);
    return { echo: params?.marker, from: this.name };
  }

  private ports(suite: Suite): AgentPorts {
    let alive = true;
    this.powerOffs.push(() => {
      alive = false;
    });
    return {
      link: this.relay.port(this),
      timer: this.world.makeTimer(() => alive),
      random: seededRandom(this.seed),
      suite,
      log: () => undefined,
    };
  }

  private provision(agentToken: string): void {
    const { provisionBootCount } = this.build.agent;
    const done = provisionBootCount(this.storage, this.world.makeSuite(), agentToken);
    if (!done.ok) throw new Error(`${this.name} cannot be provisioned: ${done.problem}`);
  }

  private provisionAnew(): void {
    this.tokens++;
    const bytes = new Uint8Array(32).fill(this.tokens);
    bytes.set([this.seed & 255, this.seed >> 8]);
    this.agentToken = makeToken("e2e", bytes);
    this.provision(this.agentToken);
    this.world.tokenChanged(this);
  }
}
