/** All that one hub knows and counts, made once and handed to each of its parts. */
import type { Connection } from "./connection.ts";
import { Counters } from "./counters.ts";
import { DEFAULT_LIMITS, type HubLimits } from "./limits.ts";
import { Lobby } from "./lobby.ts";
import { Lockout } from "./lockout.ts";
import { Notices } from "./notices.ts";
import { Outbox } from "./outbox.ts";
import { Owners } from "./owners.ts";
import { type ClientPeer, Peers } from "./peers.ts";
import type { HubPort } from "./ports.ts";
import { Presence } from "./presence.ts";
import { RequestIds } from "./request-ids.ts";
import { Revocations } from "./revocations.ts";
import { Sessions } from "./sessions.ts";
import { Wheel } from "./wheel.ts";

export interface HubOptions {
  /** Shared with REST, which counts its failures in the same place. */
  lockout?: Lockout;
  limits?: Partial<HubLimits>;
}

export class Tables {
  readonly port: HubPort;
  readonly limits: HubLimits;
  readonly lockout: Lockout;
  readonly counters = new Counters();
  /** Every connection whose socket is not gone yet, ended ones included. */
  readonly connections = new Set<Connection>();
  readonly lobby: Lobby;
  readonly wheel: Wheel<Connection>;
  readonly peers = new Peers();
  readonly owners = new Owners();
  readonly requestIds = new RequestIds<ClientPeer>();
  readonly revocations = new Revocations();
  readonly sessions: Sessions;
  readonly outbox: Outbox;
  readonly notices: Notices;
  readonly presence: Presence;

  constructor(port: HubPort, options: HubOptions, now: number) {
    this.port = port;
    this.limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.lockout = options.lockout ?? new Lockout();
    this.lobby = new Lobby(this.limits.waitingPerAddress);
    this.wheel = new Wheel(now);
    this.sessions = new Sessions(this.limits.maxRequests, port);
    this.outbox = new Outbox(this.limits.outboxBytes);
    this.notices = new Notices(this.outbox, this.counters, this.limits.maxMessageBytes);
    this.presence = new Presence(this.outbox, this.notices);
  }
}
