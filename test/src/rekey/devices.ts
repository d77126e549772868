/** The runtimes whose devices take a new secret, each over a medium and a link from outside. */
import type { AgentStatus, LinkPort, StoragePort, TimerPort } from "@blindrelay/agent-sdk";
import { type ConnectWire, MemoryPreference, XsDevice } from "@blindrelay/agent-sdk/engines";
import { deviceScript, quickjsScript } from "@blindrelay/agent-sdk/testing/build/engine-scripts";
import { buildXsModules } from "@blindrelay/agent-sdk/testing/build/xs";
import { loadQuickjs, QuickjsDevice } from "@blindrelay/agent-sdk/testing/quickjs-device";
import type { Version } from "@blindrelay/protocol/crypto";
import { PROGRAMS } from "../runtime-parity/programs.ts";
import { engine, whySkipped, withoutEngine } from "../xs/engine.ts";

const MAX_COMPUTE = 1e9;
const PROGRAM = "echo";
const programs = { [PROGRAM]: PROGRAMS[PROGRAM].path };

/** The configuration of a device; `url`: of the relay's WebSocket. */
export interface Identity {
  readonly url: string;
  readonly agentId: string;
  readonly relayToken: string;
  readonly agentToken: string;
  readonly packetVersion: Version;
  readonly pushKey?: string;
}

export interface Place {
  readonly timer: TimerPort;
  readonly link: LinkPort;
  readonly connect: ConnectWire;
  readonly storage: StoragePort;
  readonly onState?: (status: AgentStatus) => void;
}

export interface Device {
  /** Throws what the device throws. */
  provision(agentToken: string, seed?: string): void;
  start(identity: Identity): void;
  /** A power cut. */
  end(): Promise<void>;
}

export interface DeviceRuntime {
  readonly title: string;
  readonly isThere: boolean;
  load(): Promise<(place: Place) => Device>;
}

/** The SDK's preferences on such a medium, which may tear a value. */
class StoredPreference extends MemoryPreference {
  private readonly storage: StoragePort;

  constructor(storage: StoragePort) {
    super();
    this.storage = storage;
  }

  override get(domain: string, key: string): ArrayBuffer | undefined {
    const text = this.storage.read(`${domain}/${key}`);
    return text === null ? undefined : Uint8Array.from(Buffer.from(text, "latin1")).buffer;
  }

  override set(domain: string, key: string, value: ArrayBuffer): void {
    // For its limits.
    super.set(domain, key, value);
    this.storage.write(`${domain}/${key}`, Buffer.from(value).toString("latin1"));
  }
}

const xs: DeviceRuntime = {
  title: `XS${whySkipped}`,
  isThere: !withoutEngine,
  async load() {
    const script = await deviceScript(await buildXsModules(), programs);
    return ({ timer, connect, storage, onState }) => {
      const preference = new StoredPreference(storage);
      const device = new XsDevice({
        ...{ engine, script, timer, connect, preference, maxCompute: MAX_COMPUTE },
        ...(onState && { onState }),
      });
      return {
        provision: (agentToken, seed) => device.provision(agentToken, seed),
        start: (identity) => device.start({ ...identity, takesRekeys: true }, PROGRAM),
        end: () => device.end(),
      };
    };
  },
};

const quickjs: DeviceRuntime = {
  title: "QuickJS",
  isThere: true,
  async load() {
    const engine = await loadQuickjs();
    const script = await quickjsScript(programs);
    return ({ timer, link, storage, onState }) => {
      const random = (length: number) => crypto.getRandomValues(new Uint8Array(length));
      const device = new QuickjsDevice({
        ...{ engine, script, timer, link, random, storage },
        ...(onState && { onState }),
      });
      return {
        provision: (agentToken, seed) => device.provision(agentToken, seed),
        start: (identity) => device.start({ ...identity, takesRekeys: true }, PROGRAM),
        end: async () => device.end(),
      };
    };
  },
};

export const DEVICE_RUNTIMES: readonly DeviceRuntime[] = [xs, quickjs];
