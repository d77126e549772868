/**
 * Mode `raw`: bytes of ports in both directions, for `blindrelay attach` and `shell --serial`.
 *
 *   serial.resume {claim, read, write?, …}  begins and resumes, without loss; see raw-port.ts
 *                                           (its answer's `port` is the name in notifications)
 *   serial.read {stream}                    bytes from the device; the newest reader takes over
 *   serial.write {stream}                   bytes to the device; ends when the port accepted them
 *   all
 *   serial.configure {baud_rate, …}         settings, kept when the port is reopened
 *   serial.signals {steps} or {dtr, rts, break}   control lines
 *   serial.purge {read, write}              forgets what is under way
 *   serial.status {}                        settings, status lines, counts
 *   serial.ports {}                         the ports and who uses them
 *
 * `port` in a call chooses where an agent has several. What nobody acknowledged is bounded for each
 * port and each of its streams, so that one that floods delays the others by its window at most.
 *
 * Without a reader the device's output is lost, as on an unconnected cable.
 */
import { type LineSettings, readSettings, settingsAsJson } from "@blindrelay/protocol/serial";
import type { Agent, SessionPart, SessionWiring } from "../core/agent.ts";
import type { CallContext } from "../core/dispatch.ts";
import { Streams } from "../core/streams.ts";
import type { TimerPort } from "../ports.ts";
import { DeviceAway } from "./away.ts";
import { type OpenPort, PortError, type PortUser, type StatusLines } from "./port.ts";
import type { RawPort, Resume, SessionsOfPort } from "./raw-port.ts";
import { readSignals, runSignals } from "./signals.ts";

const CLAIM = /^[A-Za-z0-9_-]{22}$/;
const MAX_USER_LENGTH = 64;
/** How often status lines are read; and where none is known yet: a port server tells them late. */
const STATUS_MS = 100;
const UNKNOWN_STATUS_MS = 1_000;

/** If the port rejects a request, that is the caller's error; if it is gone, a retry may help. */
const asCallError = (error: unknown): Error =>
  error instanceof PortError && error.problem !== "unsupported"
    ? new DeviceAway(error.message, false)
    : (error as Error);

const isNumber = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0;

/** Throws an Error for invalid params. */
const readResume = (params: unknown): Resume => {
  const { claim, opening, read, write, takeover, user } = (params ?? {}) as Record<string, unknown>;
  const { stream, from } = (read ?? {}) as { stream?: unknown; from?: unknown };
  if (typeof claim !== "string" || !CLAIM.test(claim)) {
    throw new Error("claim is 22 characters of base64url, drawn at random");
  }
  if (stream === undefined) throw new Error("read needs a stream: {stream, from?}");
  if (from !== undefined && !isNumber(from)) throw new Error("read.from is the number of a byte");
  if (write !== undefined && (typeof write !== "object" || write === null)) {
    throw new Error("write is {stream}");
  }
  if (user !== undefined && (typeof user !== "string" || user.length > MAX_USER_LENGTH)) {
    throw new Error(`user is a text of at most ${MAX_USER_LENGTH} characters`);
  }
  return {
    claim,
    opening,
    read: { stream, from },
    write: write as Resume["write"],
    takeover: takeover === true,
    user: user === undefined || user === "" ? "another client" : (user as string),
  };
};

const readPurge = (params: unknown): { read: boolean; write: boolean } => {
  const { read, write } = (params ?? {}) as { read?: unknown; write?: unknown };
  for (const value of [read, write]) {
    if (value !== undefined && typeof value !== "boolean") {
      throw new Error("read and write are true or false");
    }
  }
  return { read: read === true, write: write === true };
};

/** Ports in an error; `serial.ports` lists all. */
const MAX_LISTED = 16;

const withoutPort = (params: unknown): unknown => {
  if (typeof params !== "object" || params === null || !("port" in params)) return params;
  const { port: _, ...rest } = params;
  return rest;
};

/** A port of the agent, over its openings. */
export class RawLine {
  readonly line: RawPort;
  /** The port's name in notifications, and others that `port` in a call may be. */
  readonly names: readonly string[];
  /** As they were last set; the supervisor opens the port with the same ones. */
  settings: LineSettings;
  readonly timer: TimerPort;
  private port: OpenPort | null = null;
  private polling: unknown = null;

  constructor(line: RawPort, names: readonly string[], settings: LineSettings, timer: TimerPort) {
    this.line = line;
    this.names = names;
    this.settings = settings;
    this.timer = timer;
  }

  opened(port: OpenPort, sessions: SessionsOfPort, changed: (lines: StatusLines) => void): void {
    this.port = port;
    this.line.opened(port, sessions);
    void this.poll(port, "", changed);
  }

  closed(reason: string): void {
    this.port = null;
    if (this.polling !== null) this.timer.clear(this.polling);
    this.line.closed(reason);
  }

  /** Throws a DeviceAway without a port. */
  get open(): OpenPort {
    if (this.port === null) throw this.line.away();
    return this.port;
  }

  private async poll(
    port: OpenPort,
    known: string,
    changed: (lines: StatusLines) => void,
  ): Promise<void> {
    const lines = await port.status();
    if (this.port !== port) return;
    const isKnown = Object.values(lines).some((value) => value !== null);
    // A reading fails when an adapter is pulled: that is no change.
    const text = isKnown || known === "" ? JSON.stringify(lines) : known;
    if (known !== "" && text !== known) changed(lines);
    const waitMs = isKnown ? STATUS_MS : UNKNOWN_STATUS_MS;
    this.polling = this.timer.set(waitMs, () => void this.poll(port, text, changed));
  }
}

/** The device program of an agent with one raw port or several. */
export class RawProgram {
  private readonly lines: readonly RawLine[];
  private agent: Agent | null = null;
  private sessions: SessionsOfPort | null = null;

  constructor(lines: readonly RawLine[]) {
    this.lines = lines;
  }

  /** The agent starts, with all ports closed. */
  readonly program = (agent: Agent): void => {
    this.agent = agent;
    const { streams, wiring } = this.attachTo(agent);
    this.sessions = {
      streams,
      heardAt: (sid) => wiring.heardAt(sid),
      notify: (sid, method, params) =>
        wiring.send(sid, JSON.stringify({ jsonrpc: "2.0", method, params })),
    };
    this.handleStreams();
    this.handleSettings();
    agent.handle("serial.ports", () => ({
      ports: this.lines.map(({ line, names: [port, name] }) => ({
        port,
        name,
        mode: "raw",
        ...line.usage,
      })),
    }));
  };

  /** A port of the running agent is open. */
  opened(raw: RawLine, port: OpenPort): PortUser {
    raw.opened(port, this.sessions as SessionsOfPort, (lines) => {
      this.agent?.emit("serial.changed", { port: raw.names[0], ...lines });
    });
    return {
      data: (bytes) => raw.line.data(bytes),
      end: async (reason) => raw.closed(reason),
    };
  }

  /** Streams over the agent's sessions, of whose ends the ports hear too. */
  private attachTo(agent: Agent): { streams: Streams; wiring: SessionWiring } {
    let wiring!: SessionWiring;
    const streams = new Streams({
      log: agent.log,
      after: (ms, fn) => agent.after(ms, fn),
      attach: (part: SessionPart) => {
        wiring = agent.attach({
          methods: part.methods,
          receive: (method, params, sid) => part.receive(method, params, sid),
          lost: (sid, reason) => {
            part.lost(sid, reason);
            for (const { line } of this.lines) line.lost(sid, reason);
          },
        });
        return wiring;
      },
    });
    return { streams, wiring };
  }

  /** Throws an Error if `params` name no port of this agent, or must. */
  private find(params: unknown): RawLine {
    const { port: asked } = (params ?? {}) as { port?: unknown };
    const { lines } = this;
    const [first] = lines;
    const found =
      asked === undefined && lines.length === 1
        ? first
        : lines.find(({ names }) => names.includes(asked as string));
    if (found !== undefined) return found;
    const listed = lines.slice(0, MAX_LISTED).map(({ names }) => [...new Set(names)]);
    const more = lines.length > MAX_LISTED ? `, and ${lines.length - MAX_LISTED} more` : "";
    const list = listed.map((names) => names.join(", also called ")).join("; ") + more;
    throw new Error(
      asked === undefined
        ? `this agent has several ports, and one must be named: ${list}`
        : `there is no port ${JSON.stringify(asked)}: this agent has ${list}`,
    );
  }

  /** Its calls are about one port, and are refused in the same way. */
  private handle(
    method: string,
    run: (raw: RawLine, params: unknown, context: CallContext) => unknown,
  ): void {
    this.agent?.handle(method, (params: unknown, context: CallContext) =>
      run(this.find(params), params, context),
    );
  }

  private handleStreams(): void {
    type Params = { readonly stream?: unknown } | undefined;
    this.handle("serial.resume", async (raw, params, { sid }) => ({
      port: raw.names[0],
      ...(await raw.line.resume(sid, readResume(params))),
      settings: settingsAsJson(raw.settings),
    }));
    this.handle("serial.read", (raw, params, { sid }) => {
      raw.line.readBare(sid, (params as Params)?.stream);
      return settingsAsJson(raw.settings);
    });
    this.handle("serial.write", async (raw, params, { sid }) => {
      await raw.line.writeBare(sid, (params as Params)?.stream);
      return settingsAsJson(raw.settings);
    });
    this.handle("serial.purge", ({ line }, params, { sid }) => {
      const { read, write } = readPurge(params);
      if (write) line.checkWritable();
      line.purge(sid, read, write);
      return {};
    });
  }

  private handleSettings(): void {
    const change = (
      line: RawPort,
      sid: string,
      run: (open: OpenPort) => Promise<void>,
    ): Promise<void> =>
      line.inOrder(sid, run).catch((error) => {
        throw asCallError(error);
      });
    this.handle("serial.configure", async (raw, params, { sid }) => {
      raw.line.checkWritable();
      // In their order: each changes what the one before has left.
      await change(raw.line, sid, async (port) => {
        const next = readSettings(withoutPort(params), raw.settings);
        await port.configure(next);
        raw.settings = next;
      });
      return settingsAsJson(raw.settings);
    });
    this.handle("serial.signals", async ({ line, timer }, params, { sid }) => {
      line.checkWritable();
      const steps = readSignals(params);
      await change(line, sid, (port) => runSignals(port, steps, timer));
      return {};
    });
    this.handle("serial.status", async (raw) => {
      const lines = await raw.open.status();
      const { line, settings } = raw;
      return {
        mode: "raw",
        ...settingsAsJson(settings),
        ...lines,
        ...line.counts,
        reader: line.isRead,
        writer: line.isWritten,
      };
    });
  }
}
