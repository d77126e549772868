/**
 * Runs a hub: gives it a clock and a tick, passes its questions to the store, and returns one
 * answer to each within bounded time. Decides nothing.
 */
import { AUTH_TIMEOUT_MS } from "@blindrelay/protocol";
import type { Clocks } from "../base/clock.ts";
import { contained, countFault } from "../base/contain.ts";
import { newTimings, type Timings } from "../base/duration-histogram.ts";
import { type MaybePromise, whenKnown } from "../base/maybe-promise.ts";
import { ALONE, type Bus, type Claim, FREE } from "../core/bus.ts";
import type { AgentLabels } from "../core/connections/access-key.ts";
import type { Connection } from "../core/connections/connection.ts";
import { Hub } from "../core/hub.ts";
import { shortestMoveMs } from "../core/lifecycle/drain.ts";
import { type HubLimits, TICK_MS } from "../core/limits/limits.ts";
import type { Lockout } from "../core/limits/lockout.ts";
import type { AuthRequest, AuthResult, HubLookups, HubPort, WriteBehind } from "../core/ports.ts";
import type { ErrorLog } from "../store/outage-log.ts";

export interface HubParts {
  lookups: HubLookups;
  writeBehind: WriteBehind;
  /** Shared with REST. Uses `clocks.steadyMs`. */
  lockout: Lockout;
  limits?: Partial<HubLimits>;
  clocks: Clocks;
  log: ErrorLog;
  /** Defaults to the process's own timers; a simulator passes a virtual clock. */
  timer?: DriverTimer;
  /** Leads to the other nodes; absent: there are none. */
  bus?: Bus;
  /**
   * Called if the hub fails on every tick: links would neither be pinged nor end, so this relay is
   * of no use.
   */
  broken?: (error: unknown) => void;
  /** Reserves requests of a session for this node of a cluster; returns the number. */
  reserve?: (sessionHash: string) => Promise<number>;
}

/** The hub's source of time. */
export interface DriverTimer {
  /** Milliseconds, monotonic; the origin does not matter. */
  now(): number;
  /** Calls `fn` every `ms` milliseconds until the returned function is called. */
  every(ms: number, fn: () => void): () => void;
  /** Calls `fn` once after `ms` milliseconds unless the returned function is called first. */
  after(ms: number, fn: () => void): () => void;
  /** Calls `fn` in the next turn of the event loop, after the sockets that are ready. */
  soon(fn: () => void): void;
}

/** How a load balancer learns that a node accepts no new peers. */
interface Door {
  close(): void;
  /** From then on until it has noticed. */
  readonly delayMs: number;
  /** Closes without waiting for another node: this one cannot serve anybody. */
  readonly atOnce?: boolean;
}

const NO_DOOR: Door = { close: () => undefined, delayMs: 0 };

export interface RunningHub {
  readonly timings: Timings;
  readonly hub: Hub;
  /** The hub's clock, which is monotonic. */
  readonly nowMs: () => number;
  readonly log: ErrorLog;
  /**
   * Closes all links and resolves when the last socket is gone, or after `timeoutMs` and the delay;
   * true if none is left. While no other node is ready for its peers, but one may be soon, a node
   * first goes on serving them, and accepts new ones, for as long as the time allows.
   */
  drain(timeoutMs: number, door?: Door): Promise<boolean>;
  /** Stops the ticks. The hub does nothing by itself afterwards. */
  stop(): void;
}

/**
 * A store that has not answered by then counts as unavailable. The peer has waited as long as for
 * its own `auth`; a fleet that reconnects at once may keep a slow disk busy for half of this time.
 */
const LOOK_UP_TIMEOUT_MS = AUTH_TIMEOUT_MS;

const AWAY: AuthResult = {
  ok: false,
  code: "UNAVAILABLE",
  error: "The relay cannot check credentials now",
  counted: false,
};

/** Five seconds. */
const HOPELESS_TICKS = 50;

/**
 * Nodes that are stopped at the same moment drain in turn: each learns from the one before it that
 * it is needed.
 */
const TURN_MS = 250;
const MAX_TURN_MS = 1000;

/** An internal error ends the connection that caused it, with its own close code. */
export const CLOSE_INTERNAL = 1011;

const SYSTEM_TIMER: DriverTimer = {
  now: () => performance.now(),
  every: (ms, fn) => {
    const timer = setInterval(contained("hub", "the hub's clock failed", fn), ms);
    return () => clearInterval(timer);
  },
  after: (ms, fn) => {
    const timer = setTimeout(contained("hub", "the hub's timer failed", fn), ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
  soon: (fn) => void setImmediate(contained("hub", "the hub's turn failed", fn)),
};

export const runHub = (parts: HubParts): RunningHub => {
  const { lookups, writeBehind, clocks, log, timer = SYSTEM_TIMER, bus = ALONE } = parts;
  const { steadyMs: nowMs, wallMs } = clocks;
  const timings = newTimings();
  const complain = (what: string) => (error: unknown) => log.error({ err: error }, what);
  const failed = (what: string) => (error: unknown) => {
    countFault("hub");
    complain(what)(error);
  };
  const ending = (connection: Connection, what: string) => (error: unknown) => {
    failed(what)(error);
    connection.link.close(CLOSE_INTERNAL, "INTERNAL");
  };
  const failHeld = (connection: Connection, error: unknown) =>
    ending(connection, "the hub failed on a message that had waited")(error);
  const port: HubPort = {
    authenticate(connection, request) {
      const startedMs = timer.now();
      const fail = ending(connection, "the hub failed on an authentication");
      const finish = (result: AuthResult, claim: Claim) => {
        try {
          hub.authenticated(connection, result, nowMs(), claim);
        } catch (error) {
          fail(error);
        }
        const { accepted, refused } = timings;
        (result.ok ? accepted : refused).observe(timer.now() - startedMs);
      };
      const judge = (result: AuthResult) => {
        if (result.ok && result.role === "agent" && hub.isAuthenticating(connection)) {
          const { userId, agentId, loginNumber } = result;
          bus.claim(userId, agentId, loginNumber, (claim) => finish(result, claim));
        } else {
          finish(result, FREE);
        }
      };
      const lost = (error: unknown) => {
        complain("authentication could not be looked up")(error);
        judge(AWAY);
      };
      const isWanted = () =>
        hub.isAuthenticating(connection) &&
        parts.lockout.secondsLeft(connection.address, nowMs()) === 0;
      const asked = { ...request, isWanted };
      handOn(timer, () => authenticate(lookups, clocks, asked), judge, lost, fail);
    },
    findOwner(connection, agentId) {
      const found = (owner: string | null) => hub.ownerFound(connection, owner, nowMs());
      const lost = (error: unknown) => {
        complain("an agent's owner could not be looked up")(error);
        hub.ownerUnknown(connection, nowMs());
      };
      const fail = ending(connection, "the hub failed on an agent's owner");
      handOn(timer, () => lookups.ownerOf(agentId), found, lost, fail);
    },
    findLabels(agentId) {
      const found = (agent: AgentLabels | null) => hub.labelsFound(agentId, agent, nowMs());
      const lost = (error: unknown) => {
        complain("an agent's labels could not be looked up")(error);
        hub.labelsUnknown(agentId, nowMs());
      };
      const fail = failed("the hub failed on an agent's labels");
      handOn(timer, () => lookups.labelsOf(agentId), found, lost, fail);
    },
    nextTurn() {
      timer.soon(() => {
        try {
          hub.turn(nowMs(), failHeld);
        } catch (error) {
          failed("the hub failed on a turn")(error);
        }
      });
    },
    saveRequestsUsed(sessionHash, used, added) {
      writeBehind
        .saveRequestsUsed(sessionHash, used, added)
        .catch(complain("a request count was not saved"));
    },
    agentSeen(agentId, _, report, online) {
      writeBehind
        .agentSeen(agentId, wallMs(), report, online)
        .catch(complain("an agent's last contact was not saved"));
    },
  };
  const { reserve } = parts;
  if (reserve !== undefined) {
    port.reserveRequests = (sessionHash) => {
      const granted = (requests: number | null) =>
        hub.reserved(sessionHash, requests, nowMs(), failHeld);
      const lost = (error: unknown) => {
        complain("requests could not be reserved")(error);
        granted(null);
      };
      const fail = failed("the hub failed on a reservation");
      const giveBack = (requests: number) => port.saveRequestsUsed(sessionHash, 0, -requests);
      handOn(timer, () => reserve(sessionHash), granted, lost, fail, giveBack);
    };
  }
  const wallAt = (steadyMs: number) => steadyMs - nowMs() + wallMs();
  const hub = new Hub(port, { ...parts, wallAt }, nowMs());
  let failedTicks = 0;
  const stopTicking = timer.every(TICK_MS, () => {
    try {
      hub.tick(nowMs());
      failedTicks = 0;
    } catch (error) {
      failedTicks += 1;
      failed("the hub failed on a tick")(error);
      if (failedTicks === HOPELESS_TICKS) parts.broken?.(error);
    }
  });

  return {
    hub,
    nowMs,
    log,
    timings,
    drain: async (timeoutMs, { close, delayMs, atOnce = false } = NO_DOOR) => {
      const endsAt = timer.now() + delayMs + timeoutMs;
      const turnAt = timer.now() + Math.min(bus.rank() * TURN_MS, MAX_TURN_MS);
      const isMyTurn = () => timer.now() >= turnAt;
      const leftMs = () => endsAt - timer.now();
      const isEmpty = () => hub.connectionCount === 0;
      const mustMove = () => leftMs() <= delayMs + shortestMoveMs(hub.connectionCount);
      const mayLeave = () => bus.hasReadyNode() || !bus.expectsNode() || isEmpty();
      await until(timer, () => atOnce || mustMove() || (isMyTurn() && mayLeave()));
      close();
      bus.sayReadiness();
      const noticedAt = timer.now() + delayMs;
      await until(timer, () => timer.now() >= noticedAt);
      hub.drain(leftMs());
      await until(timer, () => isEmpty() || leftMs() <= 0);
      return isEmpty();
    },
    stop: stopTicking,
  };
};

/**
 * Asks by the wall clock, which expiry refers to, and answers by the hub's clock, which cannot
 * jump.
 */
const authenticate = (
  lookups: HubLookups,
  { steadyMs, wallMs }: Clocks,
  request: AuthRequest,
): MaybePromise<AuthResult> =>
  whenKnown(lookups.authenticate({ ...request, nowMs: wallMs() }), (result) =>
    result.ok ? { ...result, expiresAtMs: result.expiresAtMs + steadyMs() - wallMs() } : result,
  );

/**
 * Asks, and passes the answer to `take`, immediately if it is available, or the error to `lost`,
 * within bounded time; `fail` gets what either throws. A late answer goes to `late` alone: its
 * connection may have another look-up in progress.
 */
const handOn = <T>(
  timer: DriverTimer,
  ask: () => MaybePromise<T>,
  take: (value: T) => void,
  lost: (error: unknown) => void,
  fail: (error: unknown) => void,
  late: (value: T) => void = () => undefined,
): void => {
  const tell = <V>(use: (value: V) => void, value: V): void => {
    try {
      use(value);
    } catch (error) {
      fail(error);
    }
  };
  let answer: MaybePromise<T>;
  try {
    answer = ask();
  } catch (error) {
    tell(lost, error);
    return;
  }
  if (!(answer instanceof Promise)) {
    tell(take, answer);
    return;
  }
  let isLate = false;
  const cancel = timer.after(LOOK_UP_TIMEOUT_MS, () => {
    isLate = true;
    tell(lost, new Error(`no answer within ${LOOK_UP_TIMEOUT_MS} ms`));
  });
  const hear =
    <V>(use: (value: V) => void, useLate: (value: V) => void) =>
    (value: V): void => {
      cancel();
      tell(isLate ? useLate : use, value);
    };
  answer.then(
    hear(take, late),
    hear(lost, () => undefined),
  );
};

/** Looks at every tick. */
const until = (timer: DriverTimer, isSo: () => boolean): Promise<void> =>
  new Promise((resolve) => {
    const look = (): void => {
      if (isSo()) resolve();
      else timer.after(TICK_MS, look);
    };
    look();
  });
