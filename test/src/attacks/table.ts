/**
 * What was tried against a relay from outside, row by row, and the tests that try it ever since: a
 * file, and a text in it that names the test. table.test.ts holds the table to the files.
 */
export interface Attack {
  readonly rows: readonly number[];
  readonly what: string;
  readonly tests: readonly (readonly [file: string, title: string])[];
}

const RELAY = "relay-server/src";

/** Rows 1 to 16 are earlier scripts, numbered by subject here. */
export const ATTACKS: readonly Attack[] = [
  {
    rows: [1],
    what: "fragments that keep memory alive",
    tests: [
      ["test/src/overload/memory.test.ts", "200 connections with 16,000 fragments each"],
      [
        "test/src/overload/memory.test.ts",
        "2,000 connections that wait, each with nearly a message",
      ],
    ],
  },
  {
    rows: [2],
    what: "kills while writing",
    tests: [["test/src/kill/kill.test.ts", "nothing acknowledged is lost in"]],
  },
  {
    rows: [3],
    what: "signals that come twice",
    tests: [[`${RELAY}/signals.test.ts`, "the first signal drains, the second is ignored"]],
  },
  {
    rows: [4],
    what: "one-time codes, guessed and repeated",
    tests: [
      [`${RELAY}/http/routes/auth.test.ts`, "requires the code, once, with one step of drift"],
      [
        `${RELAY}/http/routes/auth.test.ts`,
        "wrong codes after a correct password lock the account",
      ],
    ],
  },
  {
    rows: [5, 6],
    what: "rate of messages, floods of control frames",
    tests: [
      ["test/src/contract/link.test.ts", "a burst of 2,000 passes, the rest is RATE_LIMITED"],
      [`${RELAY}/ws/connection.test.ts`, "accepts pings at the rate of messages"],
    ],
  },
  {
    rows: [7, 8],
    what: "a full disk, a slow flush",
    tests: [
      [`${RELAY}/disk.test.ts`, "a full disk is reported, makes the relay not ready"],
      [`${RELAY}/disk.test.ts`, "a disk that fails or is slow is named"],
    ],
  },
  {
    rows: [9, 10],
    what: "a clock that jumps",
    tests: [
      [`${RELAY}/server.test.ts`, "a clock that jumps ahead and is corrected ends no link"],
      [`${RELAY}/base/clock.test.ts`, "a jump moves only the wall clock"],
    ],
  },
  {
    rows: [12, 13],
    what: "users apart; odd HTTP",
    tests: [
      ["test/src/contract/rest.test.ts", "another user's resource is 404, like a missing one"],
      [
        "test/src/contract/routing.test.ts",
        "users are separate: the same first part is two sessions",
      ],
      [`${RELAY}/http/errors.test.ts`, "bytes that are not HTTP"],
    ],
  },
  {
    rows: [14],
    what: "bodies byte by byte",
    tests: [[`${RELAY}/http/limits/time-limits.test.ts`, "a slow body is aborted, except uploads"]],
  },
  {
    rows: [15, 16],
    what: "frames that break RFC 6455; random requests",
    tests: [
      [`${RELAY}/ws/edge.test.ts`, "a frame that breaks RFC 6455 ends only its connection"],
      ["test/src/conformance/conformance.test.ts", "requests are answered as documented"],
    ],
  },
  {
    rows: [19],
    what: "a client that never reads",
    tests: [
      ["test/src/contract/link.test.ts", "costs the sender SLOW_CONSUMER, and is closed with 1013"],
      [`${RELAY}/http/limits/untaken-answers.test.ts`, "over its limit until enough is taken"],
    ],
  },
  {
    rows: [20],
    what: "600 upgrades reset at once; a FIN with the upgrade",
    tests: [["test/src/attacks/raw-http.test.ts", "600 upgrades that are reset at once"]],
  },
  {
    rows: [21],
    what: "certificates reloaded, mismatched, not PEM, missing",
    tests: [
      [`${RELAY}/ops/tls.test.ts`, "a reload uses the new pair for new connections"],
      [`${RELAY}/ops/tls.test.ts`, "a pair that does not match, or is not PEM, changes nothing"],
      ["test/src/attacks/tls.test.ts", "300 SIGHUPs with pairs that are whole, mixed and no PEM"],
      ["test/src/attacks/tls.test.ts", "one peer that renegotiates again and again is cut off"],
    ],
  },
  {
    rows: [26],
    what: "forwarded addresses, Host",
    tests: [
      [
        `${RELAY}/http/base/client-address.test.ts`,
        "an untrusted sender of the header is logged once",
      ],
      ["test/src/contract/link.test.ts", "counts IPv6 by /64"],
      [`${RELAY}/http/limits/request-limits.test.ts`, "an invalid Host is 400, not a fault"],
    ],
  },
  {
    rows: [27],
    what: "traversals, names of prototypes, open redirects",
    tests: [["test/src/attacks/raw-http.test.ts", "finds nothing, and leads nowhere"]],
  },
  {
    rows: [28],
    what: "JSON: depth, width, keys twice, __proto__, byte order mark, surrogates",
    tests: [["test/src/attacks/raw-http.test.ts", "is answered without a fault"]],
  },
  {
    rows: [29],
    what: "cursors, wildcards",
    tests: [
      ["test/src/attacks/raw-http.test.ts", "is none of any list"],
      ["test/src/attacks/raw-http.test.ts", "the cursor of one user shows nothing"],
      [`${RELAY}/http/routes/agent-list.test.ts`, "exactly and without wildcards"],
    ],
  },
  {
    rows: [31],
    what: "artifacts: cut, too large, wrongly signed, ranges, tickets, downloads that nobody reads",
    tests: [
      [`${RELAY}/releases/artifact.test.ts`, "is one piece"],
      [`${RELAY}/http/routes/releases.test.ts`, "is refused if over the limit, empty"],
      [`${RELAY}/http/routes/releases.test.ts`, "an aborted upload leaves nothing"],
      [`${RELAY}/http/routes/releases.test.ts`, "a forged one is not"],
    ],
  },
  {
    rows: [32, 33],
    what: "hostile texts in console and terminal",
    tests: [
      ["test/src/console/console.test.ts", "is served with a strict policy"],
      ["tools/src/cli.test.ts", "does not let text from others control the terminal"],
    ],
  },
  {
    rows: [34],
    what: "documents as a weapon",
    tests: [
      [`${RELAY}/http/limits/request-limits.test.ts`, "documents and bundles are sent once"],
      [`${RELAY}/http/limits/time-limits.test.ts`, "a relay ends a connection that sends many"],
    ],
  },
  {
    rows: [37, 38],
    what: "revocations and one-time codes raced over two nodes",
    tests: [
      [
        `${RELAY}/store/concurrency.test.ts`,
        "two concurrent rotations leave exactly one live token",
      ],
      [`${RELAY}/store/concurrency.test.ts`, "concurrent wrong codes on two nodes are all counted"],
      [`${RELAY}/store/store.test.ts`, "a recovery code can be used once, by its own user"],
    ],
  },
  {
    rows: [41],
    what: "a store of a newer program",
    tests: [[`${RELAY}/store/store.test.ts`, "a store from a newer program is refused"]],
  },
  {
    rows: [45],
    what: "an old backup under a fleet",
    tests: [["test/src/restore/restored.test.ts", "1,000 agents are back within five minutes"]],
  },
  {
    rows: [46],
    what: "a second relay on one folder; a backup and a new key while it runs",
    tests: [
      [`${RELAY}/main.test.ts`, "refuses a folder that another relay uses"],
      [`${RELAY}/ops/ops.test.ts`, "of a running relay is a complete store without the key"],
      [`${RELAY}/server.test.ts`, "the master key is not rotated under a running relay"],
    ],
  },
  {
    rows: [48],
    what: "frozen processes",
    tests: [["test/src/cluster/cluster.test.ts", "a node is frozen: its agents move to others"]],
  },
  {
    rows: [49],
    what: "clocks that differ",
    tests: [
      [`${RELAY}/control/login-check.test.ts`, "codes tried while the clock was ahead lock nobody"],
      [`${RELAY}/store/clock.test.ts`, "a node whose clock is wrong accepts right codes"],
    ],
  },
  {
    rows: [50, 51],
    what: "database and bus away, locked or frozen",
    tests: [
      [`${RELAY}/outage.test.ts`, "a frozen database is a 503 in time"],
      [`${RELAY}/outage.test.ts`, "a statement that waits for a lock does not count"],
      [
        `${RELAY}/bus/cluster.test.ts`,
        "links and local routing continue, remote calls fail at once",
      ],
    ],
  },
  {
    rows: [53],
    what: "lost, malformed and doubled messages on the bus",
    tests: [
      [`${RELAY}/bus/lost-messages.test.ts`, "presence is correct again after a lost message"],
      [`${RELAY}/bus/lost-messages.test.ts`, "malformed messages are dropped and counted"],
      [`${RELAY}/bus/lost-messages.test.ts`, "on a bus that delivers everything twice"],
    ],
  },
  {
    rows: [56],
    what: "secrets in logs, metrics and printed settings",
    tests: [
      [
        "test/src/instruments/secrets/secrets.test.ts",
        "recognises secrets without a format by their registration",
      ],
      [`${RELAY}/ops/ops.test.ts`, "without passwords"],
    ],
  },
  {
    rows: [17, 18],
    what: "odd upgrades, heads and framings; upgrades with a body",
    tests: [
      ["test/src/overload/edge/odd.test.ts", "odd upgrades, heads and bodies"],
      ["test/src/overload/edge/odd.test.ts", "random ones, and pieces of them"],
    ],
  },
  {
    rows: [22],
    what: "half TLS handshakes",
    tests: [
      [
        `${RELAY}/http/limits/connections.test.ts`,
        "a handshake of which %s has come ends after 10 s",
      ],
      [
        "test/src/overload/edge/flood.test.ts",
        "15,000 connections of one host whose handshake stays unfinished",
      ],
    ],
  },
  {
    rows: [23],
    what: "refused upgrades that are held",
    tests: [
      [
        "test/src/overload/edge/stop.test.ts",
        "what was refused is gone within seconds while the relay runs",
      ],
      [
        `${RELAY}/http/limits/connections.test.ts`,
        "a refused connection is cut after 3 s, whatever its peer does",
      ],
    ],
  },
  {
    rows: [24],
    what: "SIGTERM against each kind of connection",
    tests: [["test/src/overload/edge/stop.test.ts", "SIGTERM ends it within"]],
  },
  {
    rows: [25],
    what: "few descriptors",
    tests: [["test/src/attacks/descriptors.test.ts", "who is there is served"]],
  },
  {
    rows: [30],
    what: "U+0000 and surrogates in bodies",
    tests: [
      [
        `${RELAY}/http/base/faithful.test.ts`,
        "whatever JSON.stringify writes is kept, unless it has U+0000",
      ],
      [`${RELAY}/http/errors.test.ts`, "is 422, and leaves its Idempotency-Key free"],
    ],
  },
  {
    rows: [35],
    what: "floods of health",
    tests: [
      ["test/src/overload/edge/flood.test.ts", "a balancer among 4,800 looks at a time"],
      [`${RELAY}/shared-look.test.ts`, "a look that fails is not remembered"],
    ],
  },
  {
    rows: [36],
    what: "a flood of rotations",
    tests: [
      [`${RELAY}/store/bounds.test.ts`, "a loop of rotations displaces its own tokens"],
      [`${RELAY}/store/bounds.test.ts`, "what a user adds in a month stays within the bounds"],
    ],
  },
  {
    rows: [39],
    what: "a name's lockout over a restart",
    tests: [
      [
        `${RELAY}/http/routes/auth.test.ts`,
        "are exempt from the lockout of the name, also after a restart",
      ],
    ],
  },
  {
    rows: [40],
    what: "a store of an earlier version",
    tests: [
      [
        `${RELAY}/control/made-before.test.ts`,
        "opens a store of an earlier version and accepts its tokens",
      ],
    ],
  },
  {
    rows: [52],
    what: "a failover to a stale standby",
    tests: [
      [
        `${RELAY}/bus/cluster.test.ts`,
        "after a failover to a database that has lost the last notices",
      ],
    ],
  },
  {
    rows: [54],
    what: "mixed versions",
    tests: [
      [
        `${RELAY}/store/additive.test.ts`,
        "the version before starts afterwards, and a newer one finds its work done",
      ],
      [
        `${RELAY}/bus/lost-messages.test.ts`,
        "a node of a version without planned moves still hands an agent over",
      ],
      [`${RELAY}/bus/lost-messages.test.ts`, "a hint without notices, as older nodes send it"],
    ],
  },
  {
    rows: [11, 47],
    what: "churn of connections; many agents in a small heap, scaled",
    tests: [
      ["test/src/attacks/small-heap.test.ts", "connections that come and go in whatever state"],
      ["test/src/attacks/small-heap.test.ts", "which all leave at once and come back"],
    ],
  },
  {
    rows: [57],
    what: "npm run rolling, scaled",
    tests: [["test/src/attacks/nodes.test.ts", "no call is lost, run twice or late"]],
  },
  {
    rows: [42],
    what: "kills during an init and a migration",
    tests: [
      ["test/src/attacks/steps.test.ts", "init, killed at its steps, is repeated or was done"],
      ["test/src/attacks/steps.test.ts", "a migration of an earlier store, killed at its steps"],
    ],
  },
  {
    rows: [43],
    what: "a disk that fills during a migration",
    tests: [["test/src/attacks/full-migration.test.ts", "with %d KB left"]],
  },
  {
    rows: [44],
    what: "damaged stores, before a start and under a running relay",
    tests: [
      [`${RELAY}/store/damaged.test.ts`, "a broken page that a start does not need is exit 4"],
    ],
  },
  {
    rows: [55],
    what: "one node, then three, then one, under calls",
    tests: [
      [
        "test/src/cluster/rebalance.test.ts",
        "about the share moves to the others, no call is lost",
      ],
      [
        "test/src/cluster/rebalance.test.ts",
        "when two of three nodes end at once, no call is lost",
      ],
    ],
  },
];
