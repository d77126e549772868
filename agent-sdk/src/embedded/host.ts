/**
 * The edge for an engine that is embedded in another program, such as QuickJS in C: what that
 * program provides to the engine, as functions of numbers and strings, and what it calls. Nothing
 * here is specific to one engine. docs/bring-your-runtime.md describes it for authors of a host.
 */
import type { Suite } from "@blindrelay/protocol/crypto";
import type { LinkEvents, LinkPort, Log, Random, StoragePort, TimerPort } from "../ports.ts";
import { embeddedSuite, type HostAes, type HostHmac, hostBytes } from "./suite.ts";

/** Written by the host. An exception that one of them throws ends the call that led to it. */
export interface Host {
  /** Milliseconds of a monotonic clock. */
  now(): number;
  /** `fired(id)` follows once, after at most 2^30 ms and never from inside. */
  setTimer(id: number, ms: number): void;
  /** Harmless if the timer has fired. */
  clearTimer(id: number): void;
  /** `length` random bytes, in hex. */
  random(length: number): string;
  /** The ASCII text stored under this name, else null. */
  read(name: string): string | null;
  /** Durable on return. */
  write(name: string, text: string): void;
  /** Opens a WebSocket to this address; `opened(id)` or `closed(id, 1006, "")` follows. */
  connect(id: number, url: string): void;
  /** One text message. */
  send(id: number, text: string): void;
  /** Ends the WebSocket; `closed(id, …)` still follows. */
  close(id: number, code: number, reason: string): void;
  /** For the operator of the device; contains no secrets. `level`: debug, info, warn or error. */
  log(level: string, line: string): void;
  /** AES-128 of whole blocks (ECB); all in hex. May be absent; packet version "2" requires it. */
  readonly aes?: HostAes;
  /** HMAC-SHA256; all in hex. May be absent, but saves most of what a session's opening costs. */
  readonly hmac?: HostHmac;
}

/**
 * Called by the host, each in a separate turn, never from inside one of its functions. After each
 * call the host runs the engine's pending jobs. Ids of ended timers and links are ignored.
 */
export interface HostEvents {
  fired(id: number): void;
  opened(id: number): void;
  /** One whole text message, in the order received. */
  received(id: number, text: string): void;
  closed(id: number, code: number, reason: string): void;
}

/** What an edge supplies: everything that an agent needs from its runtime. */
export interface RuntimePorts {
  readonly timer: TimerPort;
  readonly link: LinkPort;
  readonly random: Random;
  readonly storage: StoragePort;
  readonly suite: Suite;
  readonly log: Log;
}

export interface EmbeddedPorts extends RuntimePorts {
  readonly events: HostEvents;
}

/** Many hosts take delays as 32-bit integers; a longer wait is split. */
const LONGEST_MS = 2 ** 30;

export const embeddedPorts = (host: Host): EmbeddedPorts => {
  const timers = new Map<number, () => void>();
  const links = new Map<number, LinkEvents>();
  let last = 0;

  const arm = (id: number, end: number, fn: () => void): void => {
    // First: what the host refuses is not kept.
    host.setTimer(id, Math.min(Math.ceil(Math.max(0, end - host.now())), LONGEST_MS));
    timers.set(id, () => {
      if (host.now() < end) arm(id, end, fn);
      else fn();
    });
  };

  return {
    timer: {
      now: () => host.now(),
      set: (ms, fn) => {
        last++;
        arm(last, host.now() + ms, fn);
        return last;
      },
      clear: (handle) => {
        if (timers.delete(handle as number)) host.clearTimer(handle as number);
      },
    },
    link: {
      connect: (url, events) => {
        last++;
        const id = last;
        let closing = false;
        host.connect(id, url);
        links.set(id, events);
        return {
          send: (text) => {
            if (!closing && links.has(id)) host.send(id, text);
          },
          close: (code, reason) => {
            if (closing || !links.has(id)) return;
            closing = true;
            host.close(id, code, reason);
          },
        };
      },
    },
    random: (length) => hostBytes(host.random(length), length, "random"),
    storage: {
      read: (name) => host.read(name),
      write: (name, text) => host.write(name, text),
    },
    suite: embeddedSuite(host),
    log: (level, message, fields) =>
      host.log(level, fields === undefined ? message : `${message} ${JSON.stringify(fields)}`),
    events: {
      fired: (id) => {
        const fn = timers.get(id);
        timers.delete(id);
        fn?.();
      },
      opened: (id) => links.get(id)?.opened(),
      received: (id, text) => links.get(id)?.received(text),
      closed: (id, code, reason) => {
        const events = links.get(id);
        links.delete(id);
        events?.closed(code, reason);
      },
    },
  };
};
