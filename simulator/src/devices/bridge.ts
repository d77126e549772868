/**
 * A bridge with two serial ports, as `blindrelay bridge --mode raw` is one, for searches. What is
 * on their cables, a driver plays.
 */
import type { Agent } from "@blindrelay/agent-sdk";
import {
  type Access,
  NO_STATUS,
  type OpenPort,
  type PortUser,
  RawLine,
  RawPort,
  type RawPortEdge,
  RawProgram,
} from "@blindrelay/agent-sdk/bridge";
import { DEFAULT_SETTINGS } from "@blindrelay/protocol/serial";

/** Bytes that the device took: whose they are, and the number of the first. */
export interface Taken {
  readonly opening: string;
  readonly user: string;
  readonly number: number;
  readonly bytes: Uint8Array;
}

/** What is known of a write at the port. */
interface Writing {
  readonly taken: number;
  readonly jobs: readonly { readonly claim: { readonly id: string } }[];
}

/** A serial port with the device on its cable. */
export class Cable {
  readonly name: string;
  readonly line: RawPort;
  readonly raw: RawLine;
  isPaused = false;
  /** How long the port takes for each write. */
  slowMs = 0;
  /** Told of what the device took; keeps it until somebody is. */
  took: ((taken: Taken) => void) | null = null;
  readonly untold: Taken[] = [];
  private readonly edge: RawPortEdge;
  private readonly open: (cable: Cable, port: OpenPort) => PortUser;
  private user: PortUser | null = null;

  constructor(
    name: string,
    access: Access,
    edge: RawPortEdge,
    open: (cable: Cable, port: OpenPort) => PortUser,
  ) {
    this.name = name;
    this.edge = edge;
    this.open = open;
    this.line = new RawPort(name, access, edge);
    this.raw = new RawLine(this.line, [name, `${name}-too`], DEFAULT_SETTINGS, edge.timer);
  }

  get isPlugged(): boolean {
    return this.user !== null;
  }

  plug(): void {
    this.isPaused = false;
    this.user = this.open(this, {
      write: (bytes) => this.write(bytes),
      pause: () => {
        this.isPaused = true;
      },
      resume: () => {
        this.isPaused = false;
      },
      configure: async () => undefined,
      control: async (lines) => this.controlled(lines),
      status: async () => NO_STATUS,
      close: async () => undefined,
    });
  }

  async pull(): Promise<void> {
    const { user } = this;
    this.user = null;
    await user?.end("unplugged");
  }

  says(bytes: Uint8Array): void {
    this.user?.data(bytes);
  }

  controlled(_lines: object): void {}

  private async write(bytes: Uint8Array): Promise<void> {
    const { line, slowMs } = this;
    const opening = line.opening as string;
    const { taken: number, jobs } = line as unknown as Writing;
    const user = jobs[0]?.claim.id ?? "";
    if (slowMs > 0) await new Promise<void>((resolve) => this.edge.timer.set(slowMs, resolve));
    if (line.opening !== opening) throw new Error("unplugged");
    const taken = { opening, user, number, bytes };
    if (this.took === null) this.untold.push(taken);
    else this.took(taken);
  }
}

const ACCESS: readonly Access[] = ["takeover", "first"];

export const bridge =
  (edge: RawPortEdge) =>
  (agent: Agent): void => {
    const cables = ACCESS.map(
      (access, n) => new Cable(`tty${n}`, access, edge, ({ raw }, port) => all.opened(raw, port)),
    );
    const all = new RawProgram(cables.map(({ raw }) => raw));
    all.program(agent);
    for (const cable of cables) cable.plug();
    agent.expose("cables", () => cables);
  };
