/**
 * Devices of a live fleet that run in a board's engine instead of Node. XS gets its timers, sockets
 * and flash from this process, so network faults affect it; Espruino is a process with its own
 * sockets.
 */
import { loadDialect } from "@blindrelay/agent-sdk/dialect";
import {
  Engine,
  type EngineProcess,
  espruinoFile,
  linkWire,
  MemoryPreference,
  XsDevice,
  xsScript,
} from "@blindrelay/agent-sdk/engines";
import { systemTimer } from "@blindrelay/agent-sdk/node";
import type { LinkPort } from "@blindrelay/agent-sdk/ports";
import type { AeadVersion } from "@blindrelay/protocol/crypto";
import { espruinoProgram, xsProgram } from "./board-programs.ts";
import type { Identity, Missing } from "./fleet.ts";
import type { Changed } from "./outages.ts";

export type BoardEngine = "xs" | "espruino";

export interface BoardMember extends Identity {
  version: AeadVersion;
  startMs: number;
  engine: BoardEngine;
  /** The program's file. */
  program: string;
  /** Only for XS. */
  link: LinkPort;
}

export interface BoardsOptions {
  /** The relay's `/wss` address. */
  url: string;
  /** The engines' executables on this machine. */
  engines: { readonly [engine in BoardEngine]?: string };
}

/** What a board reports about its link. */
interface Status {
  readonly state: string;
  readonly code: string | null;
  readonly advice: string | null;
}

interface Board {
  /** Rejects if the agent does not start. */
  powerOn(member: BoardMember): Promise<void>;
  powerOff(): Promise<void>;
  /** Immediately, when this process exits. */
  kill(): void;
}

type MakeBoard = (onStatus: (status: Status) => void) => Board;

/** Steps for one run of pending jobs: more than 10 s of a small board's time. */
const XS_MAX_COMPUTE = 2e8;
const XS_MAX_MEMORY_KIB = 131_072;
const XS_PROGRAM = "own";
const ESPRUINO_LOOK_MS = 50;

export class Boards {
  private readonly options: BoardsOptions;
  private readonly seats = new Map<string, Seat>();

  /** Creates none of them yet. */
  constructor(options: BoardsOptions, members: Iterable<BoardMember>) {
    this.options = options;
    for (const member of members) this.seats.set(member.id, new Seat(member));
  }

  get connected(): number {
    return this.sum(({ isOnline }) => (isOnline ? 1 : 0));
  }

  get everConnected(): number {
    return this.sum(({ logins }) => Math.min(logins, 1));
  }

  get loggedIn(): number {
    return this.sum(({ logins }) => logins);
  }

  get size(): number {
    return this.seats.size;
  }

  has(id: string): boolean {
    return this.seats.has(id);
  }

  /** Reads the programs and starts every board when it is due. Rejects if one cannot be read. */
  async start(): Promise<void> {
    const makers = await makeMakers(this.options, [...this.seats.values()]);
    for (const seat of this.seats.values()) {
      const make = makers.get(seat.member.engine)?.get(seat.member.program) as MakeBoard;
      seat.start(make);
    }
  }

  powerOff(id: string): void {
    this.seats.get(id)?.powerOff();
  }

  /** Like Fleet.powerOn: a new `agentToken` comes with empty storage. */
  powerOn(id: string, changed: Changed = {}): void {
    this.seats.get(id)?.powerOn(changed);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.seats.values()].map((seat) => seat.powerOff()));
  }

  /** Ends every engine at once. */
  kill(): void {
    for (const seat of this.seats.values()) seat.kill();
  }

  missing(): Missing[] {
    return [...this.seats.values()].filter(({ isOnline }) => !isOnline).map((seat) => seat.why());
  }

  private sum(of: (seat: Seat) => number): number {
    let total = 0;
    for (const seat of this.seats.values()) total += of(seat);
    return total;
  }
}

/** One device across all its starts. */
export class Seat {
  member: BoardMember;
  logins = 0;
  private make: MakeBoard | null = null;
  private board: Board | null = null;
  private timer: NodeJS.Timeout | undefined;
  private isOn = false;
  private status: Status = { state: "idle", code: null, advice: null };
  /** Requests to it are executed in turn. */
  private turn: Promise<void> = Promise.resolve();

  constructor(member: BoardMember) {
    this.member = member;
  }

  get isOnline(): boolean {
    return this.status.state === "online";
  }

  /** Switches it on when it is due. */
  start(make: MakeBoard): void {
    this.make = make;
    this.timer = setTimeout(() => this.powerOn({}), this.member.startMs);
  }

  /** Does nothing if it is on. */
  powerOn(changed: Changed): void {
    clearTimeout(this.timer);
    if (this.isOn) return;
    this.isOn = true;
    this.turn = this.turn.then(async () => {
      this.member = { ...this.member, ...changed };
      if (changed.agentToken !== undefined) this.board = null;
      this.board ??= (this.make as MakeBoard)((status) => this.hear(status));
      await this.board.powerOn(this.member).catch((error: Error) => {
        this.hear({ state: "failed", code: "PROGRAM", advice: error.message });
      });
    });
  }

  powerOff(): Promise<void> {
    clearTimeout(this.timer);
    this.isOn = false;
    this.turn = this.turn.then(async () => {
      await this.board?.powerOff();
      this.hear({ state: "off", code: null, advice: null });
    });
    return this.turn;
  }

  kill(): void {
    this.board?.kill();
  }

  why(): Missing {
    const { state, code, advice } = this.status;
    return { id: this.member.id, code: code ?? state, advice: advice ?? "" };
  }

  private hear(status: Status): void {
    if (!this.isOnline && status.state === "online") this.logins += 1;
    this.status = status;
  }
}

/** By engine and program. */
async function makeMakers(
  { url, engines }: BoardsOptions,
  seats: readonly Seat[],
): Promise<Map<BoardEngine, Map<string, MakeBoard>>> {
  const programs = (engine: BoardEngine): string[] => [
    ...new Set(seats.flatMap(({ member }) => (member.engine === engine ? [member.program] : []))),
  ];
  const xs = new Map<string, MakeBoard>();
  for (const file of programs("xs")) {
    const scripts = [await xsScript(), xsProgram(file, file, XS_PROGRAM)] as const;
    xs.set(file, (onStatus) => xsBoard(engines.xs as string, scripts, url, onStatus));
  }
  const espruino = new Map<string, MakeBoard>();
  for (const file of programs("espruino")) {
    const program = await espruinoProgram(file, file);
    const binary = engines.espruino as string;
    espruino.set(file, (onStatus) => espruinoBoard(binary, program, url, onStatus));
  }
  return new Map([
    ["xs", xs],
    ["espruino", espruino],
  ]);
}

const xsBoard = (
  engine: string,
  scripts: readonly [script: string, program: string],
  url: string,
  onStatus: (status: Status) => void,
): Board => {
  const [script, program] = scripts;
  const preference = new MemoryPreference();
  let isProvisioned = false;
  let device: XsDevice | null = null;
  return {
    powerOn: async ({ id, name, relayToken, agentToken, version, link }) => {
      device = new XsDevice({
        engine,
        script,
        timer: systemTimer(),
        // The device's own address has no TLS; the link below uses TLS if the relay's address does.
        connect: linkWire({ connect: (_, events) => link.connect(url, events) }),
        preference,
        maxCompute: XS_MAX_COMPUTE,
        maxMemoryKiB: XS_MAX_MEMORY_KIB,
        onState: onStatus,
        onFailure: ({ message }) => onStatus({ state: "failed", code: "PROGRAM", advice: message }),
      });
      device.evaluate(program);
      if (!isProvisioned) device.provision(agentToken);
      isProvisioned = true;
      const who = { agentId: id, relayToken, agentToken, packetVersion: version, name };
      device.start({ url: "ws://relay.invalid/wss", ...who, serialNumber: id }, XS_PROGRAM);
    },
    powerOff: async () => {
      await device?.end();
      device = null;
    },
    kill: () => void device?.end(),
  };
};

/** Reports every change of the link's state. */
const espruinoStart = (boot: string): string => `
  try {
    ${boot};
    var last = "";
    setInterval(() => {
      var s = $br.status();
      if (s.state + s.code === last) return;
      last = s.state + s.code;
      tell({ state: s.state, code: s.code, advice: s.advice });
    }, ${ESPRUINO_LOOK_MS});
  } catch (e) {
    tell({ state: "failed", code: "PROGRAM", advice: e.toString() });
  }
`;

const espruinoBoard = (
  binary: string,
  program: string,
  url: string,
  onStatus: (status: Status) => void,
): Board => {
  const engine = new Engine(binary);
  let isProvisioned = false;
  let life: EngineProcess | null = null;
  const listen = async (own: EngineProcess): Promise<void> => {
    try {
      for (;;) {
        const status = await own.told<Status>();
        if (life === own) onStatus(status);
      }
    } catch (error) {
      const advice = (error as Error).message.slice(-500);
      if (life === own) onStatus({ state: "failed", code: "ENDED", advice });
    }
  };
  return {
    powerOn: async ({ id, name, relayToken, agentToken, version }) => {
      const secrets = { relay_token: relayToken, agent_token: agentToken };
      const config = { url, agent_id: id, ...secrets, v: version, name };
      await engine.install("blindrelay.json", JSON.stringify(config));
      if (!isProvisioned) {
        await engine.install("blindrelay", await espruinoFile(version));
        await engine.install("program", program);
        await engine.ask('require("blindrelay").provision(); tell(1);');
      }
      isProvisioned = true;
      const { bootCode } = await loadDialect();
      life = engine.start(espruinoStart(bootCode(undefined, false)));
      listen(life);
    },
    powerOff: async () => {
      const ended = life;
      life = null;
      await ended?.kill();
    },
    kill: () => void life?.kill(),
  };
};
