/**
 * Mode `raw`: the port's bytes in both directions, for `blindrelay attach` and `shell --serial`.
 *
 *   serial.resume {claim, read, write?, …}  begins and resumes, without loss; see raw-port.ts
 *   serial.read {stream}                    bytes from the device; the newest reader takes over
 *   serial.write {stream}                   bytes to the device; ends when the port accepted them
 *   all
 *   serial.configure {baud_rate, …}         settings, kept when the port is reopened
 *   serial.signals {steps} or {dtr, rts, break}   control lines
 *   serial.purge {read, write}              forgets what is under way
 *   serial.status {}                        settings, status lines, counts
 *   serial.ports {}                         the port and who uses it
 *
 * Without a reader the device's output is lost, as on an unconnected cable.
 */
import type { Agent, CallContext, SessionPart, SessionWiring } from "@blindrelay/agent-sdk/node";
import type { TimerPort } from "@blindrelay/agent-sdk/ports";
import { Streams } from "@blindrelay/agent-sdk/streams";
import { type LineSettings, type OpenPort, PortError, type StatusLines } from "../serial/port.ts";
import type { PortUser } from "../serial/supervise.ts";
import { DeviceAway } from "./away.ts";
import type { RawPort, Resume } from "./raw-port.ts";
import { readSettings, settingsAsJson } from "./settings.ts";
import { readSignals, runSignals } from "./signals.ts";

/** What raw.ts and lines.ts provide for an open port. */
export interface PortProgram {
  readonly program: (agent: Agent) => void;
  /** Bytes come to the user from now on. */
  begin?(): void;
  readonly user: PortUser;
}

export interface RawProgramOptions {
  /** Outlives the port's openings. */
  readonly line: RawPort;
  /** Names that `port` in a call may have. */
  readonly names: readonly string[];
  readonly timer: TimerPort;
}

const CLAIM = /^[A-Za-z0-9_-]{22}$/;
const MAX_USER_LENGTH = 64;
/** How often status lines are read, where the port has some. */
const STATUS_MS = 100;

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

/** Streams over an agent's sessions, of whose ends the port hears too. */
const attachTo = (agent: Agent, line: RawPort): { streams: Streams; wiring: SessionWiring } => {
  let wiring!: SessionWiring;
  const streams = new Streams({
    attach: (part: SessionPart) => {
      wiring = agent.attach({
        methods: part.methods,
        receive: (method, params, sid) => part.receive(method, params, sid),
        lost: (sid, reason) => {
          part.lost(sid, reason);
          line.lost(sid, reason);
        },
      });
      return wiring;
    },
  });
  return { streams, wiring };
};

/** The device program for an open port. */
export const rawProgram = (
  port: OpenPort,
  settings: LineSettings,
  { line, names, timer }: RawProgramOptions,
): PortProgram => {
  const [name = "", ...others] = names;
  let current = settings;
  let streams: Streams | null = null;
  let changed: (lines: StatusLines) => void = () => undefined;
  let polling: unknown = null;
  let isOver = false;

  const checkPort = (params: unknown): void => {
    const { port: asked } = (params ?? {}) as { port?: unknown };
    if (asked === undefined || names.includes(asked as string)) return;
    const also = others.filter((other) => other !== name);
    const list = [name, ...also].join(", also called ");
    throw new Error(`there is no port ${JSON.stringify(asked)}: this agent has ${list}`);
  };
  const withoutPort = (params: unknown): unknown => {
    if (typeof params !== "object" || params === null || !("port" in params)) return params;
    const { port: _, ...rest } = params;
    return rest;
  };

  const program = (agent: Agent): void => {
    const { streams: made, wiring } = attachTo(agent, line);
    streams = made;
    line.opened(port, {
      streams: made,
      heardAt: (sid) => wiring.heardAt(sid),
      notify: (sid, method, params) =>
        wiring.send(sid, JSON.stringify({ jsonrpc: "2.0", method, params })),
    });
    changed = (lines) => void agent.emit("serial.changed", { port: name, ...lines });
    type Params = { readonly stream?: unknown } | undefined;
    /** Its calls are about one port, and are refused in the same way. */
    const handle = (
      method: string,
      run: (params: unknown, context: CallContext) => unknown,
    ): void => {
      agent.handle(method, (params: unknown, context: CallContext) => {
        checkPort(params);
        return run(params, context);
      });
    };
    handle("serial.resume", async (params, { sid }) => ({
      ...(await line.resume(sid, readResume(params))),
      settings: settingsAsJson(current),
    }));
    handle("serial.read", (params, { sid }) => {
      line.readBare(sid, (params as Params)?.stream);
      return settingsAsJson(current);
    });
    handle("serial.write", (params, { sid }) => {
      const started = line.writeBare(sid, (params as Params)?.stream);
      if (started === undefined) return settingsAsJson(current);
      return started.then(() => settingsAsJson(current));
    });
    handle("serial.configure", async (params) => {
      line.checkWritable();
      const next = readSettings(withoutPort(params), current);
      await line
        .inOrder((open) => open.configure(next))
        .catch((error) => {
          throw asCallError(error);
        });
      current = next;
      return settingsAsJson(current);
    });
    handle("serial.signals", async (params) => {
      line.checkWritable();
      const steps = readSignals(params);
      await line
        .inOrder((open) => runSignals(open, steps))
        .catch((error) => {
          throw asCallError(error);
        });
      return {};
    });
    handle("serial.purge", (params, { sid }) => {
      const { read, write } = readPurge(params);
      if (write) line.checkWritable();
      line.purge(sid, read, write);
      return {};
    });
    handle("serial.status", async () => ({
      mode: "raw",
      ...settingsAsJson(current),
      ...(await port.status()),
      ...line.counts,
      reader: line.isRead,
      writer: line.isWritten,
    }));
    agent.handle("serial.ports", () => ({ ports: [{ port: name, mode: "raw", ...line.usage }] }));
  };

  let known = "";
  const poll = async (): Promise<void> => {
    const lines = await port.status();
    const text = JSON.stringify(lines);
    if (known !== "" && text !== known) changed(lines);
    known = text;
    const hasLines = Object.values(lines).some((value) => value !== null);
    if (!isOver && hasLines) polling = timer.set(STATUS_MS, () => void poll());
  };

  return {
    program,
    begin: () => void poll(),
    user: {
      data: (bytes) => line.data(bytes),
      end: async (reason) => {
        isOver = true;
        if (polling !== null) timer.clear(polling);
        line.closed(reason);
        streams?.fail(reason);
      },
    },
  };
};
