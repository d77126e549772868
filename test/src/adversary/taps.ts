/**
 * Lets an observer see all inputs and outputs of a build's sessions, on both sides, by wrapping the
 * public methods of their classes. Sessions are identified by their suite object: every participant
 * of a world has its own.
 */
import type { HmacKey, Suite } from "@blindrelay/protocol/crypto";
import { toHex } from "@blindrelay/protocol/crypto";
import type {
  AgentSessions,
  AgentVerdict,
  ClientEffect,
  ClientSession,
} from "@blindrelay/protocol/session";
import type { Build } from "./build.ts";

/** The state of a client's session. */
export interface ClientStand {
  readonly state: string;
  readonly first: string | null;
  readonly sid: string | null;
  /** The PRK in hex: identifies the secret, and the agent, that it was configured with. */
  readonly secret: string;
}

export interface AgentObserver {
  received(
    /** As in ClientStand. */
    secret: string,
    heldBefore: readonly string[],
    heldAfter: readonly string[],
    text: string,
    now: number,
    verdict: AgentVerdict,
  ): void;
  sealed(plaintext: Uint8Array, text: string): void;
}

export interface ClientObserver {
  /** `text`: what was received; null if the session acted by itself. */
  acted(
    before: ClientStand,
    after: ClientStand,
    text: string | null,
    effects: readonly ClientEffect[],
  ): void;
  sealed(plaintext: Uint8Array, text: string): void;
}

const agents = new WeakMap<Suite, AgentObserver>();
const clients = new WeakMap<Suite, ClientObserver>();

export const observeAgent = (suite: Suite, observer: AgentObserver) => agents.set(suite, observer);
export const observeClient = (suite: Suite, observer: ClientObserver) =>
  clients.set(suite, observer);

const keyNames = new WeakMap<HmacKey, string>();
const nameOf = (key: HmacKey): string => keyNames.get(key) ?? "";

/** The same suite, with HMAC keys that the taps can identify. */
export const withKeyNames = (suite: Suite): Suite => ({
  ...suite,
  hmacKey: (key) => {
    const handle = suite.hmacKey(key);
    keyNames.set(handle, toHex(key));
    return handle;
  },
});

const tapped = new WeakSet<object>();

/** Installs the taps; only once for each build, however often it is called. */
export const tap = (build: Build): void => {
  if (tapped.has(build.session)) return;
  tapped.add(build.session);
  tapAgent(build.session.AgentSessions.prototype);
  tapClient(build.session.ClientSession.prototype);
};

const tapAgent = (methods: AgentSessions): void => {
  const { receive, seal } = methods;
  methods.receive = function (this: AgentSessions, text, now) {
    const before = this.held();
    const verdict = receive.call(this, text, now);
    const secret = nameOf(this.prk);
    agents.get(this.suite)?.received(secret, before, this.held(), text, now, verdict);
    return verdict;
  };
  methods.seal = function (this: AgentSessions, sid, plaintext) {
    const text = seal.call(this, sid, plaintext);
    if (text !== null) agents.get(this.suite)?.sealed(plaintext, text);
    return text;
  };
};

const standOf = (session: ClientSession): ClientStand => ({
  state: session.state,
  first: session.first(),
  sid: session.sid(),
  secret: nameOf(session.prk),
});

const tapClient = (methods: ClientSession): void => {
  const { open, receive, timeout, seal } = methods;
  const watch = (session: ClientSession, text: string | null, act: () => ClientEffect[]) => {
    const before = standOf(session);
    const effects = act();
    clients.get(session.suite)?.acted(before, standOf(session), text, effects);
    return effects;
  };
  methods.open = function (this: ClientSession, now) {
    return watch(this, null, () => open.call(this, now));
  };
  methods.timeout = function (this: ClientSession, now) {
    return watch(this, null, () => timeout.call(this, now));
  };
  methods.receive = function (this: ClientSession, text, now) {
    return watch(this, text, () => receive.call(this, text, now));
  };
  methods.seal = function (this: ClientSession, plaintext) {
    const text = seal.call(this, plaintext);
    if (text !== null) clients.get(this.suite)?.sealed(plaintext, text);
    return text;
  };
};
