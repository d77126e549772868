/** Implements `blindrelay attach`. Rejects with a Failure. */

import { randomBytes } from "node:crypto";
import { hostname, userInfo } from "node:os";
import { resolve } from "node:path";
import { systemTimer } from "@blindrelay/agent-sdk/node";
import { type Agent, CallError, type Client } from "@blindrelay/client-sdk";
import { type Loss, RemotePort, UNKNOWN_METHOD } from "@blindrelay/client-sdk/serial";
import { Failure } from "@blindrelay/protocol/command-line";
import { connectClient } from "../account/connect.ts";
import { presentAgent } from "../account/rekey.ts";
import type { LocalSide, Remote } from "../attach/local-side.ts";
import { type Place, takePlace } from "../attach/place.ts";
import { openPtySide } from "../attach/pty-side.ts";
import { openRecord, type Recorder } from "../attach/record.ts";
import { rfc2217Codec } from "../attach/rfc2217-codec.ts";
import { openStdio } from "../attach/stdio-side.ts";
import { openTcp, plainCodec } from "../attach/tcp-side.ts";
import { callFailure } from "../base/call-failure.ts";
import { interrupted } from "../base/interrupted.ts";
import { type JsonFlag, oneLine, printJson, printStatus, serveUnread } from "../base/output.ts";
import type { Settings } from "../config/settings.ts";

export interface AttachFlags extends JsonFlag {
  readonly pty?: string;
  readonly rfc2217?: string;
  readonly tcp?: string;
  readonly stdio?: boolean;
  readonly expose?: boolean;
  readonly watch?: boolean;
  readonly takeover?: boolean;
  readonly onLoss?: "wait" | "close";
  readonly record?: string;
}

const CONNECT_LIMIT_MS = 30_000;
const MAX_USER_LENGTH = 64;
const SIDES = ["pty", "rfc2217", "tcp", "stdio"] as const;
type Side = (typeof SIDES)[number];

const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);

/** `[HOST:]PORT`. Throws a Failure (usage). */
const readListen = (text: string, exposes: boolean): { host: string; port: number } => {
  const [, bracketed, named, digits] =
    /^(?:(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]\s]+)):)?(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (digits === undefined || port > 65_535) {
    throw new Failure("usage", `not [HOST:]PORT: ${text} (such as 4000 or 127.0.0.1:4000)`);
  }
  const host = bracketed ?? named ?? "127.0.0.1";
  if (!isLoopback(host) && !exposes) {
    const why = "whoever reaches it has the port";
    throw new Failure(
      "usage",
      `${host} is not on loopback, and ${why}: add --expose if you mean it`,
    );
  }
  return { host, port };
};

const sideOf = (flags: AttachFlags): Side => {
  const given = SIDES.filter((name) => flags[name] !== undefined);
  const [side] = given;
  if (side === undefined || given.length > 1) {
    throw new Failure("usage", "give one of --pty PATH, --rfc2217 PORT, --tcp PORT and --stdio");
  }
  return side;
};

/** What does not go together. Throws a Failure (usage). */
const checkFlags = (side: Side, flags: AttachFlags): void => {
  const wrong = (text: string): never => {
    throw new Failure("usage", text);
  };
  if (flags.watch === true && flags.takeover === true) wrong("--watch takes no place: omit one");
  if (flags.expose === true && side !== "rfc2217" && side !== "tcp") {
    wrong("--expose goes with --rfc2217 and --tcp");
  }
  if (side === "pty" && flags.onLoss === "close") {
    wrong(
      "a pseudo-terminal cannot be closed for its program: --on-loss close goes with the others",
    );
  }
  if (side === "pty" && process.platform === "win32") {
    wrong("Windows has no pseudo-terminals: use --rfc2217 instead of --pty");
  }
  if (side === "stdio" && flags.json === true) wrong("--json does not go with --stdio");
  if (side === "rfc2217" || side === "tcp")
    readListen(flags[side] as string, flags.expose === true);
};

const userName = (): string => {
  let name = "somebody";
  try {
    name = userInfo().username;
  } catch {
    // A container may run as a number.
  }
  return `${name}@${hostname()}`.slice(0, MAX_USER_LENGTH);
};

const lossText = ({ direction, outcome, from, bytes }: Loss): string => {
  const what = {
    lost: "are lost",
    unknown: "may or may not have arrived",
    "not sent": "were not sent",
  }[outcome];
  if (bytes === null) return `bytes ${direction} may be missing: its numbers do not tell`;
  const number = from === null ? "" : `, from byte ${from}`;
  return `${bytes} bytes ${direction} ${what}${number}`;
};

const startFailure = (agentId: string, error: CallError): Failure => {
  const { remote } = error;
  if (remote === undefined) return callFailure(error);
  const text =
    remote.code === UNKNOWN_METHOD
      ? `${agentId} has no serial port to share: it is not a bridge with --mode raw`
      : `${agentId}: ${oneLine(remote.message)}`;
  return new Failure("device", text, error);
};

class Attachment {
  private readonly settings: Settings;
  private readonly agentId: string;
  private readonly port: string | undefined;
  private readonly flags: AttachFlags;
  private readonly timer = systemTimer();
  private record: Recorder | null = null;
  private side: LocalSide | null = null;
  private end: (failure: Failure | null) => void = () => undefined;

  constructor(settings: Settings, agentId: string, port: string | undefined, flags: AttachFlags) {
    this.settings = settings;
    this.agentId = agentId;
    this.port = port;
    this.flags = flags;
  }

  async run(): Promise<void> {
    const { settings, agentId, flags } = this;
    const side = sideOf(flags);
    checkFlags(side, flags);
    const secret = settings.checkedSecretOf(agentId);
    const place = await this.place(side);
    let client: Client | null = null;
    try {
      if (flags.record !== undefined) {
        this.record = openRecord(flags.record, agentId, this.port ?? null);
      }
      client = await connectClient(settings, CONNECT_LIMIT_MS, { presence: true });
      const agent = await presentAgent(client, settings, agentId, secret);
      await this.serve(client, agent, side, place);
    } finally {
      await this.side?.close();
      // With its session, the claim ends.
      client?.close();
      this.record?.close();
      await place?.release();
    }
  }

  /**
   * Null for a pipe, whose next one is another user, and for those who only read at a TCP port:
   * they exclude nobody.
   */
  private async place(side: Side): Promise<Place | null> {
    const { flags, settings, agentId, port = "" } = this;
    if (side === "stdio" || (flags.watch === true && side !== "pty")) return null;
    const path = side === "pty" ? resolve(flags.pty as string) : `${side}:${flags[side]}`;
    return takePlace(settings.profilePath, [agentId, port, path]);
  }

  private async serve(
    client: Client,
    agent: Agent,
    kind: Side,
    place: Place | null,
  ): Promise<void> {
    const { flags, agentId, timer } = this;
    serveUnread();
    const over = new Promise<void>((done, failed) => {
      this.end = (failure) => (failure === null ? done() : failed(failure));
    });
    const stopped = Promise.race([over, interrupted()]);
    // It may end before it is waited for.
    stopped.catch(() => undefined);
    const remote = new RemotePort(
      agent,
      {
        port: this.port,
        claim: place?.claim ?? randomBytes(16).toString("base64url"),
        user: userName(),
        watch: flags.watch === true,
        takeover: flags.takeover === true,
        timer,
      },
      {
        data: (bytes) => {
          this.record?.bytes("device", bytes);
          if (this.side === null) remote.taken(bytes.length);
          else this.side.deliver(bytes);
        },
        writable: () => this.side?.writable(),
        up: () => {
          this.side?.up?.();
          const where = this.side?.where ?? "";
          this.tell({ event: "attached", where }, `attached: ${where}`);
        },
        down: (reason) =>
          this.down(reason instanceof CallError ? startFailure(agentId, reason).message : reason),
        lost: (loss) => {
          this.record?.lost(loss);
          this.tell({ event: "lost", ...loss }, lossText(loss));
        },
        changed: (lines) => this.side?.changed?.(lines),
      },
    );
    this.side = await this.open(kind, this.recorded(remote), remote, place);
    client.on("link", ({ state }) => {
      if (state === "online") remote.retryNow();
      if (state === "refused") {
        this.end(new Failure("refused", `the relay refuses this account's token`));
      }
    });
    client.on("presence", ({ agentId: id, online }) => {
      if (id === agentId && online) remote.retryNow();
    });
    try {
      const started = remote.start().catch((error) => {
        throw error instanceof CallError ? startFailure(agentId, error) : error;
      });
      await Promise.race([started, stopped]);
      await stopped;
    } finally {
      remote.stop();
    }
  }

  /** The remote port, with what is written recorded; a watcher writes nothing. */
  private recorded(remote: RemotePort): Remote {
    const isWatch = this.flags.watch === true;
    const refuse = async (): Promise<never> => {
      throw new Failure("usage", "--watch only reads");
    };
    return {
      write: (bytes) => {
        if (isWatch) return;
        this.record?.bytes("program", bytes);
        remote.write(bytes);
      },
      taken: (bytes) => remote.taken(bytes),
      get room() {
        return remote.room;
      },
      get settings() {
        return remote.settings;
      },
      get isUp() {
        return remote.isUp;
      },
      configure: (settings) => (isWatch ? refuse() : remote.configure(settings)),
      signals: (steps) => (isWatch ? refuse() : remote.signals(steps)),
      purge: (read, write) => remote.purge(read, write && !isWatch),
      status: () => remote.status(),
    };
  }

  private open(
    kind: Side,
    remote: Remote,
    port: RemotePort,
    place: Place | null,
  ): Promise<LocalSide> | LocalSide {
    const { flags } = this;
    if (kind === "pty") {
      return openPtySide(remote, {
        path: resolve(flags.pty as string),
        isOurs: (target) => target === place?.target,
        made: (target) => place?.keep(target),
      });
    }
    if (kind === "stdio") {
      return openStdio(remote, (isRead) => {
        if (!isRead) this.end(null);
        else if (flags.watch !== true) void port.finish().then(() => this.end(null));
      });
    }
    return openTcp(remote, {
      ...readListen(flags[kind] as string, flags.expose === true),
      closesOnLoss: flags.onLoss === "close",
      codec: kind === "tcp" ? plainCodec : rfc2217Codec(this.timer),
      scheme: kind,
    });
  }

  private down(given: string): void {
    const reason = oneLine(given);
    const { flags } = this;
    this.record?.note(`away: ${reason}`);
    this.side?.down?.();
    const closes = flags.onLoss === "close";
    if (closes && flags.stdio === true) {
      this.end(new Failure("unreachable", `${this.agentId}: ${reason}`));
      return;
    }
    this.tell({ event: "away", reason }, `away (${reason}); it is resumed when it is back`);
  }

  private tell(news: object, text: string): void {
    const { agentId, flags, port } = this;
    if (flags.json === true) printJson({ ...news, agent_id: agentId, port: port ?? null });
    else printStatus(`${agentId}: ${text}`);
  }
}

export const attach = (
  settings: Settings,
  agentId: string,
  port: string | undefined,
  flags: AttachFlags,
): Promise<void> => new Attachment(settings, agentId, port, flags).run();
