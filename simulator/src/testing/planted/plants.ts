/**
 * Bugs that this product had, or could have, which the library's scenarios must find. Each consists
 * of some text of a source file and its replacement; if the text is no longer there, the loader
 * reports it (preload.ts).
 */

/** One bug. */
export interface Bug {
  /** Relative to the repository. */
  readonly file: string;
  readonly edits: readonly { readonly from: string; readonly to: string }[];
}

export interface Plant extends Bug {
  /** A scenario of the library, and a seed, that find it. */
  readonly scenario: string;
  readonly seed: number;
  /** The oracle that reports it. */
  readonly oracle: string;
  /** The most devices in the smallest scenario; null: it is not made smaller, see `why`. */
  readonly devices: number | null;
  /** Why it needs more than five, or takes too long. */
  readonly why?: string;
}

export const PLANTS: Readonly<Record<string, Plant>> = {
  "mark moved before the tag is checked": {
    file: "protocol/src/session/agent.ts",
    edits: [
      {
        from: "    const plaintext = this.open(held, packet);\n",
        to: "    const mark = held.received;\n    held.received = packet.seq;\n    const plaintext = this.open(held, packet);\n",
      },
      {
        from: "    const gap = packet.seq - held.received - 1;\n",
        to: "    const gap = packet.seq - mark - 1;\n",
      },
    ],
    scenario: "hostile-relay",
    seed: 1,
    oracle: "delivery",
    devices: 5,
  },
  "an epoch forgets what it stored": {
    file: "protocol/src/session/agent.ts",
    edits: [{ from: "        epoch.spent.indexOf(digestOf(part)) < 0 &&\n", to: "" }],
    scenario: "hostile-relay",
    seed: 1,
    oracle: "once",
    devices: 5,
  },
  "a failed program is tried again": {
    file: "agent-sdk/src/core/push.ts",
    edits: [
      {
        from: "return writePush(storage, state, { trial: null, failed: failed });",
        to: "return writePush(storage, state, { failed: failed });",
      },
    ],
    scenario: "bad-firmware",
    seed: 1,
    oracle: "programs",
    devices: 1,
  },
  "presence flap on takeover": {
    file: "relay-server/src/core/lifecycle/auth.ts",
    edits: [
      {
        from: "      counters.takeovers += 1;\n      this.#disconnector.endWith(replaced",
        to: "      presence.announce(user, agentId, false, now);\n      presence.announce(user, agentId, true, now);\n      this.#disconnector.endWith(replaced",
      },
    ],
    scenario: "flaky-mobile-network",
    seed: 1,
    oracle: "presence",
    devices: 5,
  },
  "request counter reset on reconnect": {
    file: "relay-server/src/core/limits/request-counts.ts",
    edits: [
      {
        from: "    session.used = Math.max(session.used, stored);\n",
        to: "    session.used = 0;\n",
      },
    ],
    scenario: "relay-restart",
    seed: 1,
    oracle: "bounds",
    devices: 5,
  },
  "unbounded queue": {
    file: "relay-server/src/core/connections/outbox.ts",
    edits: [{ from: "    if (queued + bytes > this.#maxBytes) return false;\n", to: "" }],
    scenario: "slow-devices",
    seed: 1,
    oracle: "bounds",
    devices: null,
    why: "a smaller fleet fills the queue no sooner, so each try takes seconds",
  },
  "bindings evicted by age": {
    file: "relay-server/src/core/connections/bindings.ts",
    edits: [{ from: "  client.bound.delete(first);\n  client.bound.add(first);\n", to: "" }],
    scenario: "one-client-many-agents",
    seed: 1,
    oracle: "liveness",
    devices: null,
    why: "a connection has 1,024 bindings before the first is evicted",
  },
  "session tokens renewed too late": {
    file: "client-sdk/src/core/link.ts",
    edits: [{ from: "(expiresIn ?? 0) * 1000;", to: "(expiresIn ?? 0) * 1e6;" }],
    scenario: "short-sessions",
    seed: 1,
    oracle: "liveness",
    devices: 5,
  },
  "bindings not renewed": {
    file: "relay-server/src/core/connections/bindings.ts",
    edits: [
      {
        from: "sessionHash !== client.sessionHash && sessionHash !== client.renews",
        to: "sessionHash !== client.sessionHash",
      },
    ],
    scenario: "one-client-many-agents",
    seed: 1,
    oracle: "liveness",
    devices: null,
  },
  "drain without spread": {
    file: "relay-server/src/core/lifecycle/drain.ts",
    edits: [
      {
        from: "    return (FIRST_RECONNECT_MS / 100 + tenths) / 10;\n",
        to: "    return FIRST_RECONNECT_MS / 1000;\n",
      },
    ],
    scenario: "rolling-deployment",
    seed: 1,
    oracle: "bounds",
    devices: 5,
  },
  "a boot count is written over itself": {
    file: "agent-sdk/src/core/bootcount.ts",
    edits: [
      {
        from: "  writeSlot(storage, lower, count + 1, hash);\n  if (both)",
        to: "  writeSlot(storage, both ? higher : lower, count + 1, hash);\n  if (both)",
      },
    ],
    scenario: "power-cuts",
    seed: 1,
    oracle: "nonce",
    devices: 1,
  },
  "a start leaves its seed in a slot": {
    file: "agent-sdk/src/core/bootcount.ts",
    edits: [{ from: "    writeSlot(storage, higher, count + 1, next);\n", to: "" }],
    scenario: "power-cuts",
    seed: 1,
    oracle: "forward",
    devices: 1,
  },
  "a session leaves its secret to the next one": {
    file: "protocol/src/session/forward-agent.ts",
    edits: [{ from: "    this.dh = nextDh(this.suite, dh);\n    dh.fill(0);\n", to: "" }],
    scenario: "power-cuts",
    seed: 1,
    oracle: "forward",
    devices: 5,
  },
  "all sessions have one private value": {
    file: "protocol/src/session/forward-agent.ts",
    edits: [
      {
        from: "deriveAgentPrivate(suite, this.dh, this.version, sid, x);",
        to: "suite.hmac(this.prk, NO_BYTES);",
      },
    ],
    scenario: "power-cuts",
    seed: 1,
    oracle: "forward",
    devices: 5,
  },
  "a program resumes its port a byte early": {
    file: "client-sdk/src/serial/remote-port.ts",
    edits: [{ from: "from: this.readAt };", to: "from: Math.max(0, this.readAt - 1) };" }],
    scenario: "serial-ports",
    seed: 1,
    oracle: "serial",
    devices: 1,
  },
  "a bridge resumes its reader a byte early": {
    file: "agent-sdk/src/bridge/raw-port.ts",
    edits: [
      {
        from: "    claim.next = Math.max(Math.min(from, this.kept.end), claim.told);",
        to: "    claim.next = Math.max(0, from - 1, claim.told);",
      },
    ],
    scenario: "serial-ports",
    seed: 1,
    oracle: "serial",
    devices: null,
    why: "most of the scenario's losses do not show it, so each smaller one takes seconds",
  },
  "a secret counts that was not stored": {
    file: "agent-sdk/src/core/rekey.ts",
    edits: [
      {
        from: "      this.isUnsure = true;\n      this.stop(trial);\n      return false;\n",
        to: "",
      },
    ],
    scenario: "secret-rotation",
    seed: 3,
    oracle: "secrets",
    devices: 5,
  },
  "a start uses the secret of its configuration": {
    file: "agent-sdk/src/core/rekey.ts",
    edits: [{ from: 'state.token === "" ? configured : state.token,', to: "configured," }],
    scenario: "secret-rotation",
    seed: 1,
    oracle: "secrets",
    devices: 1,
  },
};

/** Bugs that only the search must find: what is left unsaid, limits, order and memory. */
export const FOR_THE_SEARCH: Readonly<Record<string, Bug>> = {
  "offline never announced": {
    file: "relay-server/src/core/lifecycle/disconnect.ts",
    edits: [{ from: "        presence.announce(peer.user, peer.agentId, false, now);\n", to: "" }],
  },
  "slow consumer not told": {
    file: "relay-server/src/core/routing/routing.ts",
    edits: [
      {
        from: '      this.#state.controlMessages.refuse(from.connection, "SLOW_CONSUMER", subject, now);\n      from.connection.link.unused',
        to: "      from.connection.link.unused",
      },
    ],
  },
  "requests without a limit": {
    file: "relay-server/src/core/limits/request-counts.ts",
    edits: [
      {
        from: '    if (session.used >= this.#maxRequests) {\n      return "used up";\n    }\n',
        to: "",
      },
    ],
  },
  "the older login stays": {
    file: "relay-server/src/core/lifecycle/auth.ts",
    edits: [
      {
        from: '      this.#disconnector.endWith(replaced.connection, "REPLACED", null, now);\n    }\n  }\n\n  /** A login',
        to: '      peers.add(replaced);\n      this.#disconnector.endWith(connection, "REPLACED", null, now);\n    }\n  }\n\n  /** A login',
      },
    ],
  },
  "a bridge expects a byte that it has": {
    file: "agent-sdk/src/bridge/raw-port.ts",
    edits: [
      {
        from: "const written = this.taken + before;",
        to: "const written = Math.max(0, this.taken - 1) + before;",
      },
    ],
  },
  "bindings survive their client": {
    file: "relay-server/src/core/lifecycle/disconnect.ts",
    edits: [{ from: "      peer.user.bindings.drop(peer);\n", to: "" }],
  },
  "a text is stored over the one before it": {
    file: "agent-sdk/src/core/storage.ts",
    edits: [
      {
        from: "    writeSlot(this.port, free, encodeRecord(key, number, encoded));\n",
        to: "    writeSlot(this.port, old === null ? free : old.slot, encodeRecord(key, number, encoded));\n",
      },
    ],
  },
  "a snapshot lacks the agents of other nodes": {
    file: "relay-server/src/core/presence/presence.ts",
    edits: [
      {
        from: "  const found = new Set(abroad.keys());\n",
        to: "  const found = new Set<string>(abroad.size < 0 ? abroad.keys() : []);\n",
      },
    ],
  },
  "an address has six guesses": {
    file: "relay-server/src/core/limits/lockout.ts",
    edits: [
      {
        from: "recent.length >= this.limits.failures;",
        to: "recent.length > this.limits.failures;",
      },
    ],
  },
  "a session's requests are never saved": {
    file: "relay-server/src/core/limits/request-counts.ts",
    edits: [{ from: "      this.#saveOne(session);\n      if", to: "      if" }],
  },
  "a trial of a secret survives every restart": {
    file: "agent-sdk/src/core/rekey.ts",
    edits: [{ from: "{ starts: 1 }", to: "{ starts: 0 }" }],
  },
};
