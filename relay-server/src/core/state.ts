/** The state of one hub, on which all its parts work. */
import { ALONE, type BusPort } from "./bus.ts";
import { RemoteAgents } from "./cluster/remote-agents.ts";
import { RemoteRouting } from "./cluster/remote-routing.ts";
import { type ClientPeer, type Connection, shareOf } from "./connections/connection.ts";
import { ControlMessages } from "./connections/control-messages.ts";
import { FairScheduler } from "./connections/fair-scheduler.ts";
import { Outbox } from "./connections/outbox.ts";
import { Peers } from "./connections/peers.ts";
import { Revocations } from "./connections/revocations.ts";
import { TimerWheel } from "./connections/timer-wheel.ts";
import { UnauthenticatedLimit } from "./connections/unauthenticated-limit.ts";
import { Counters } from "./counters.ts";
import { Gauges } from "./gauges.ts";
import { DEFAULT_LIMITS, type HubLimits } from "./limits/limits.ts";
import { Lockout } from "./limits/lockout.ts";
import { RequestCounts } from "./limits/request-counts.ts";
import { RequestIds } from "./limits/request-ids.ts";
import type { HubPort } from "./ports.ts";
import { Views } from "./presence/access-key-views.ts";
import { OwnerCache } from "./presence/owner-cache.ts";
import { Presence } from "./presence/presence.ts";

export interface HubOptions {
  /** Shared with REST, which counts its failures in the same place. */
  lockout?: Lockout;
  limits?: Partial<HubLimits>;
  /**
   * Unix milliseconds of an instant on the hub's clock, which may be off. Defaults to the instant
   * itself.
   */
  wallAt?: (nowMs: number) => number;
  /** Leads to the other nodes; absent: there are none. */
  bus?: BusPort;
}

export class HubState {
  readonly port: HubPort;
  readonly bus: BusPort;
  readonly limits: HubLimits;
  readonly lockout: Lockout;
  readonly counters = new Counters();
  readonly gauges = new Gauges();
  /** Every connection with an open socket, including ended ones. */
  readonly connections = new Set<Connection>();
  /** Connections with an incomplete fragmented message, by when it began. */
  readonly fragmented = new Map<Connection, number>();
  readonly unauthenticated: UnauthenticatedLimit;
  readonly wheel: TimerWheel<Connection>;
  readonly peers = new Peers(this.gauges);
  readonly ownerCache = new OwnerCache();
  readonly requestIds = new RequestIds<ClientPeer>(shareOf);
  readonly revocations = new Revocations();
  readonly requestCounts: RequestCounts;
  readonly outbox: Outbox;
  readonly controlMessages: ControlMessages;
  readonly presence: Presence;
  readonly remoteRouting: RemoteRouting;
  readonly scheduler: FairScheduler;
  readonly remoteAgents: RemoteAgents;
  readonly views: Views;
  /**
   * Whether agents that leave are expected on another node, because this node of a cluster ends.
   */
  moving = false;
  /** Whether some of this node's agents were asked to move, and may be between two nodes. */
  rebalancing = false;

  /** Why a message for an agent that has no link on this node, but had one, is refused. */
  get absence(): "AGENT_OFFLINE" | "UNAVAILABLE" {
    return this.moving || this.rebalancing ? "UNAVAILABLE" : "AGENT_OFFLINE";
  }

  constructor(port: HubPort, options: HubOptions, now: number) {
    this.port = port;
    this.bus = options.bus ?? ALONE;
    this.limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.lockout = options.lockout ?? new Lockout();
    this.unauthenticated = new UnauthenticatedLimit(this.limits.waitingPerAddress);
    this.wheel = new TimerWheel(now);
    this.scheduler = new FairScheduler(port);
    this.requestCounts = new RequestCounts(this.limits.maxRequests, port);
    this.outbox = new Outbox(this.limits.outboxBytes);
    this.controlMessages = new ControlMessages(
      this.outbox,
      this.counters,
      this.limits.maxMessageBytes,
    );
    this.presence = new Presence(
      this.outbox,
      this.controlMessages,
      () => this.scheduler.ask(),
      options.wallAt,
    );
    this.remoteRouting = new RemoteRouting(this);
    this.remoteAgents = new RemoteAgents(this);
    this.views = new Views((agentId) => port.findLabels(agentId));
  }
}
