/**
 * Makes a hub live: gives it a clock and a tick, asks the store what it asks, and brings the
 * answers back, one for each question, in bounded time. Decides nothing.
 */
import { AUTH_TIMEOUT_MS } from "@blindrelay/protocol";
import type { Logger } from "pino";
import type { Connection } from "../core/connection.ts";
import { Hub } from "../core/hub.ts";
import { type HubLimits, TICK_MS } from "../core/limits.ts";
import type { Lockout } from "../core/lockout.ts";
import type { AuthResult, HubLookups, HubPort, WriteBehind } from "../core/ports.ts";
import { newTimings, type Timings } from "../ops/durations.ts";

export interface HubParts {
  lookups: HubLookups;
  writeBehind: WriteBehind;
  /** Shared with REST. */
  lockout: Lockout;
  limits?: Partial<HubLimits>;
  /** Unix milliseconds that never run backwards. */
  nowMs: () => number;
  log: Pick<Logger, "error">;
}

export interface RunningHub {
  readonly timings: Timings;
  readonly hub: Hub;
  readonly nowMs: () => number;
  readonly log: Pick<Logger, "error">;
  /**
   * Sends everybody away and resolves when the last socket is gone, or after `timeoutMs`; true
   * when nobody was left.
   */
  drain(timeoutMs: number): Promise<boolean>;
  /** Disconnector the ticking. The hub does nothing of its own accord afterwards. */
  stop(): void;
}

/**
 * A store that has not answered by then is as good as away. Its peer has waited as long as for an
 * `auth` of its own; a fleet that comes back at once may keep a slow disk busy for half of it.
 */
const LOOK_UP_TIMEOUT_MS = AUTH_TIMEOUT_MS;

const FAULT: AuthResult = {
  ok: false,
  code: "INTERNAL",
  error: "The relay cannot check credentials now",
  counted: false,
};

/** A failure of ours ends the connection that met it; the close code says so. */
export const CLOSE_INTERNAL = 1011;

export const runHub = (parts: HubParts): RunningHub => {
  const { lookups, writeBehind, nowMs, log } = parts;
  const timings = newTimings();
  const complain = (what: string) => (error: unknown) => log.error({ err: error }, what);
  const ending = (connection: Connection, what: string) => (error: unknown) => {
    complain(what)(error);
    connection.link.close(CLOSE_INTERNAL, "INTERNAL");
  };
  const port: HubPort = {
    authenticate(connection, request) {
      const startedMs = performance.now();
      inTime(lookups.authenticate(request))
        .catch((error: unknown) => {
          complain("authentication could not be looked up")(error);
          return FAULT;
        })
        .then((result) => {
          hub.authenticated(connection, result, nowMs());
          const { accepted, refused } = timings;
          (result.ok ? accepted : refused).observe(performance.now() - startedMs);
        })
        .catch(ending(connection, "the hub failed on an authentication"));
    },
    findOwner(connection, agentId) {
      inTime(lookups.ownerOf(agentId))
        .then(
          (owner) => hub.ownerFound(connection, owner, nowMs()),
          (error: unknown) => {
            complain("an agent's owner could not be looked up")(error);
            hub.ownerUnknown(connection, nowMs());
          },
        )
        .catch(ending(connection, "the hub failed on an agent's owner"));
    },
    saveRequestsUsed(sessionHash, used) {
      writeBehind
        .saveRequestsUsed(sessionHash, used)
        .catch(complain("a request count was not saved"));
    },
    agentSeen(agentId, atMs, report) {
      writeBehind
        .agentSeen(agentId, atMs, report)
        .catch(complain("an agent's last contact was not saved"));
    },
  };
  const hub = new Hub(port, parts, nowMs());
  const ticking = setInterval(() => {
    try {
      hub.tick(nowMs());
    } catch (error) {
      complain("the hub failed on a tick")(error);
    }
  }, TICK_MS);

  return {
    hub,
    nowMs,
    log,
    timings,
    drain: (timeoutMs) => {
      hub.drain();
      return emptied(hub, timeoutMs);
    },
    stop: () => clearInterval(ticking),
  };
};

/** An answer that comes too late is not heard: its connection may have asked something else since. */
const inTime = <T>(answer: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`no answer within ${LOOK_UP_TIMEOUT_MS} ms`)),
      LOOK_UP_TIMEOUT_MS,
    );
    timer.unref();
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });

const emptied = (hub: Hub, timeoutMs: number): Promise<boolean> =>
  new Promise((resolve) => {
    const finish = (): void => {
      clearInterval(looking);
      clearTimeout(deadline);
      resolve(hub.connectionCount === 0);
    };
    const look = (): void => {
      if (hub.connectionCount === 0) finish();
    };
    const looking = setInterval(look, TICK_MS);
    const deadline = setTimeout(finish, timeoutMs);
    look();
  });
