/**
 * Bugs that this product had, or could have, which the library's scenarios must find. Each consists
 * of some text of a source file and its replacement; if the text is no longer there, the loader
 * reports it (preload.ts).
 */

export interface Plant {
  /** Relative to the repository. */
  readonly file: string;
  readonly edits: readonly { readonly from: string; readonly to: string }[];
  /** A scenario of the library, and a seed, that find it. */
  readonly scenario: string;
  readonly seed: number;
  /** The oracle that reports it. */
  readonly oracle: string;
  /** The most devices in the smallest scenario; null: see `why`. */
  readonly devices: number | null;
  /** Why the bug needs more than five. */
  readonly why?: string;
}

export const PLANTS: Readonly<Record<string, Plant>> = {
  "mark moved before the tag is checked": {
    file: "protocol/src/session/agent.ts",
    edits: [
      {
        from: "    const plaintext = openPacket(this.suite, held.keys.c2a, packet);\n",
        to: "    const mark = held.received;\n    held.received = packet.seq;\n    const plaintext = openPacket(this.suite, held.keys.c2a, packet);\n",
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
  "presence flap on takeover": {
    file: "relay-server/src/core/auth.ts",
    edits: [
      {
        from: "      counters.takeovers += 1;\n      this.#disconnector.endWith(older",
        to: "      presence.announce(user, agentId, false, now);\n      presence.announce(user, agentId, true, now);\n      this.#disconnector.endWith(older",
      },
    ],
    scenario: "flaky-mobile-network",
    seed: 1,
    oracle: "presence",
    devices: 5,
  },
  "request counter reset on reconnect": {
    file: "relay-server/src/core/request-counts.ts",
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
    file: "relay-server/src/core/outbox.ts",
    edits: [{ from: "    if (queued + bytes > this.#maxBytes) return false;\n", to: "" }],
    scenario: "slow-devices",
    seed: 1,
    oracle: "bounds",
    devices: 5,
  },
  "bindings evicted by age": {
    file: "relay-server/src/core/bindings.ts",
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
    file: "relay-server/src/core/bindings.ts",
    edits: [
      {
        from: "sessionHash !== client.sessionHash && sessionHash !== client.renews",
        to: "sessionHash !== client.sessionHash",
      },
    ],
    scenario: "short-sessions",
    seed: 1,
    oracle: "liveness",
    devices: 12,
  },
  "drain without spread": {
    file: "relay-server/src/core/drain.ts",
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
};
