// biome-ignore-all lint/suspicious/noTemplateCurlyInString: patches quote source text.
/**
 * Each rule of section 2, left out on purpose: a name, the patches that remove it, and what must
 * detect that. A patch's text must occur in its file exactly once, so that the patches stay up to
 * date.
 */
import type { CheckName } from "./checks.ts";
import type { MoveName } from "./moves.ts";

export interface Patch {
  /** Relative to the repository. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface Mutant {
  /** The rule that is missing. */
  readonly without: string;
  readonly patches: readonly Patch[];
  /** Moves related to the rule, played more often. */
  readonly rather?: readonly MoveName[];
  /**
   * For rules that no search can test in practice: the named check that detects it instead, and
   * why.
   */
  readonly instead?: { readonly check: CheckName; readonly because: string };
}

const AGENT = "protocol/src/session/agent.ts";
const SMALL_AGENT = "protocol/src/session/small-agent.ts";
const CLIENT = "protocol/src/session/client.ts";
const KEYS = "protocol/src/crypto/session-keys.ts";
const SECRET_KEYS = "protocol/src/crypto/secret-keys.ts";
const PACKET = "protocol/src/crypto/packet.ts";
const BASE64 = "protocol/src/encoding/base64url.ts";
const BOOT = "agent-sdk/src/core/bootcount.ts";
const FORWARD_AGENT = "protocol/src/session/forward-agent.ts";
const FORWARD_CLIENT = "protocol/src/session/forward-client.ts";
const BOOT_SEED = "agent-sdk/src/core/boot-seed.ts";
const CORE = "agent-sdk/src/core/agent-core.ts";
const DISPATCH = "agent-sdk/src/core/dispatch.ts";
const PUSH = "agent-sdk/src/core/push.ts";
const PROOFS = "agent-sdk/src/core/push-serial.ts";
const PEER = "client-sdk/src/core/peer.ts";
const CALLS = "client-sdk/src/core/session.ts";

const patch = (file: string, find: string, replace: string): Patch => ({ file, find, replace });

/** What boards run; Node's own decoder cannot be changed. */
const IN_LOOP = patch(BASE64, "if (Uint8Array.fromBase64 === undefined) return", "return");

const BOOT_COUNT: readonly Mutant[] = [
  {
    without: "the boot count is raised at every start",
    patches: [patch(CORE, "bootCount: options.bootCount,", "bootCount: 1,")],
    rather: ["restart", "replaySession"],
  },
  {
    without: "the boot count is in the epoch",
    patches: [
      patch(
        SECRET_KEYS,
        "`${EPOCH_LABEL + bootCount}|${toHex(deviceRandom)}`",
        "toHex(deviceRandom)",
      ),
    ],
    rather: ["restart", "replaySession"],
  },
  {
    without: "the boot count is on the medium before anything is sent",
    patches: [
      patch(
        BOOT,
        "  writeSlot(storage, lower, count + 1, hash);\n",
        "  Promise.resolve().then(() => writeSlot(storage, lower, count + 1, hash)).catch(() => {});\n",
      ),
    ],
    rather: ["restart", "replaySession"],
  },
  {
    without: "a missing boot count is never 0",
    patches: [patch(BOOT, 'return refused("missing");', "return provision(storage, hash);")],
    rather: ["loseMedium", "replaySession"],
  },
  {
    without: "provisioning never lowers a boot count",
    patches: [patch(BOOT, "const count = (slots[higher] as Slot).count + 1;", "const count = 1;")],
    rather: ["undoRotation", "replaySession"],
  },
  {
    without: "a torn boot-count write leaves the old or a higher value",
    patches: [patch(BOOT, "const lower = 1 - higher;", "const lower = higher;")],
    rather: ["restart", "cutPower", "replaySession"],
  },
  {
    without: "where a slot of the boot count is damaged, a count is skipped",
    patches: [patch(BOOT, "  if (both) return", "  if (both || !both) return")],
    rather: ["damageSlot", "replaySession"],
  },
];

const EPOCHS: readonly Mutant[] = [
  {
    without: "a full epoch ends",
    patches: [patch(AGENT, "    if (epoch.room === 0) {\n", "    if (epoch.room === -1e6) {\n")],
    rather: ["call", "leave", "replayOpening"],
  },
  {
    without: "an epoch remembers what it stored",
    patches: [patch(AGENT, "        epoch.spent.indexOf(digestOf(part)) < 0 &&\n", "")],
    rather: ["idle", "replaySession"],
  },
  {
    without: "the epoch before remembers what it stored",
    patches: [
      patch(
        AGENT,
        "        epoch.spent.indexOf(digestOf(part)) < 0 &&\n",
        "        (epoch !== this.epochs[0] || epoch.spent.indexOf(digestOf(part)) < 0) &&\n",
      ),
    ],
    rather: ["idle", "call", "replaySession"],
  },
  {
    without: "the epoch before the previous one is over",
    patches: [
      patch(
        AGENT,
        "    if (this.epochs.length > 1) (this.epochs.pop() as Epoch).secret.fill(0);\n",
        "",
      ),
      patch(
        AGENT,
        'this.epochs = [{ secret: secret, room: room, spent: "" }, current];',
        'this.epochs = [{ secret: secret, room: room, spent: "" } as Epoch].concat(this.epochs);',
      ),
    ],
    instead: {
      check: "olderEpochIsOver",
      because: "it takes an answer that is in flight while two epochs end",
    },
  },
  {
    without: "the previous epoch stores no more than its window",
    patches: [patch(AGENT, "      else this.eraseBefore();\n", "")],
    instead: {
      check: "previousEpochEnds",
      because: "it takes more clients at once than there are people",
    },
  },
  {
    without: "the opening of a spent C moves the epoch before it is answered",
    patches: [
      patch(
        AGENT,
        "if ((this.epochs[0] as Epoch).spent.indexOf(digestOf(part)) >= 0) {",
        "if (part === first) {",
      ),
    ],
    rather: ["idle", "leave", "replayOpening"],
  },
  {
    without: "a session is stored only after its tag verified",
    patches: [
      patch(
        AGENT,
        "    const plaintext = this.open(held, packet);\n",
        "    const opened = this.open(held, packet);\n    const plaintext = opened === null && epoch !== null ? NO_BYTES : opened;\n",
      ),
    ],
    rather: ["flip", "changeSeq"],
  },
  {
    without: "a second session of a held C is never stored",
    patches: [
      patch(
        AGENT,
        "packet.second !== null && this.findFirst(packet.first) === null",
        "packet.second !== null",
      ),
    ],
    instead: {
      check: "heldFirstIsNeverStoredTwice",
      because: "honest clients never learn another A for a C that is held",
    },
  },
  {
    without: "an opening of a held C is answered with the A of its session",
    patches: [
      patch(AGENT, "const held = this.findFirst(first);", "const held = this.find(first);"),
    ],
    rather: ["replayOpening"],
  },
  {
    without: "another A than the agent's own is not accepted",
    patches: [patch(AGENT, "equalTexts(part, this.part(epoch, packet.first))", "part.length > 0")],
    rather: ["restart", "replaySession"],
  },
  {
    without: "an opening is answered only when its tag verified",
    patches: [
      patch(
        AGENT,
        "return this.verifies(packet) ?",
        "return packet.second === null || this.verifies(packet) ?",
      ),
    ],
    rather: ["flip", "spliceParty"],
  },
  {
    without: "data of an unknown session is answered only when its tag verified",
    patches: [
      patch(
        AGENT,
        "return this.verifies(packet) ?",
        "return packet.second !== null || this.verifies(packet) ?",
      ),
    ],
    rather: ["flip", "changeSeq"],
  },
  {
    without: "a session that accepted nothing for 120 s is forgotten",
    patches: [patch(AGENT, "session.acceptedAt + SESSION_IDLE_MS", "Number.MAX_SAFE_INTEGER")],
    rather: ["idle", "reorder", "call"],
  },
  {
    without: "a session is forgotten 24 h and 10 min after it was stored",
    patches: [patch(AGENT, "session.storedAt + SESSION_MAX_AGE_MS", "Number.MAX_SAFE_INTEGER")],
    instead: { check: "oldSessionIsForgotten", because: "it takes a day of packets" },
  },
  {
    without: "a call that came after its `expires` does not run",
    patches: [patch(DISPATCH, "EXPIRES_CLOCK_MS) > expires;", "EXPIRES_CLOCK_MS) > Infinity;")],
    rather: ["call", "idle"],
  },
  {
    without: "a call runs at most 5 s after its `expires`",
    patches: [
      patch(
        DISPATCH,
        "Math.min(ageMs * EXPIRES_CLOCK_SHARE, EXPIRES_CLOCK_MS)",
        "ageMs * EXPIRES_CLOCK_SHARE",
      ),
    ],
    instead: { check: "lateCallDoesNotRun", because: "it takes a session of several minutes" },
  },
  {
    without: "an event that could not be sent is said",
    patches: [patch(CORE, "      else this.countLost(sid);\n", "")],
    instead: { check: "lostEventIsSaid", because: "what an agent does not say, nobody can miss" },
  },
];

const MARKS: readonly Mutant[] = [
  {
    without: "an agent looks at its mark",
    patches: [patch(AGENT, 'if (packet.seq <= held.received) return this.refuse("replay");', "")],
    rather: ["replay"],
  },
  {
    without: "an agent's mark is above what was accepted last",
    patches: [patch(AGENT, "packet.seq <= held.received", "packet.seq < held.received")],
    rather: ["double"],
  },
  {
    without: "an agent moves its mark after opening",
    patches: [
      patch(AGENT, "    held.received = packet.seq;\n", ""),
      patch(
        AGENT,
        'if (packet.seq <= held.received) return this.refuse("replay");',
        'if (packet.seq <= held.received) return this.refuse("replay");\n    held.received = packet.seq;',
      ),
    ],
    rather: ["changeSeq", "call"],
  },
  {
    without: "a client looks at its mark",
    patches: [patch(CLIENT, 'if (packet.seq <= this.received) return this.refuse("replay");', "")],
    rather: ["replay"],
  },
  {
    without: "a client's mark is above what was accepted last",
    patches: [patch(CLIENT, "packet.seq <= this.received", "packet.seq < this.received")],
    rather: ["double"],
  },
  {
    without: "a client moves its mark after opening",
    patches: [
      patch(CLIENT, "    this.received = packet.seq;\n", ""),
      patch(
        CLIENT,
        'if (packet.seq <= this.received) return this.refuse("replay");',
        'if (packet.seq <= this.received) return this.refuse("replay");\n    this.received = packet.seq;',
      ),
    ],
    rather: ["changeSeq", "call"],
  },
  {
    without: "an agent reports gaps",
    patches: [patch(AGENT, "      gap: gap,\n", "      gap: epoch === null ? 0 : gap,\n")],
    rather: ["drop", "call"],
  },
  {
    without: "a gap before the first packet of a session is one",
    patches: [patch(AGENT, "      gap: gap,\n", "      gap: epoch === null ? gap : 0,\n")],
    instead: {
      check: "firstGapIsReported",
      because: "our clients send nothing but one ping before the agent has stored their session",
    },
  },
  {
    without: "a client reports gaps",
    patches: [
      patch(
        CLIENT,
        'return [{ kind: "message", plaintext: plaintext, gap: gap }];',
        'return [{ kind: "message", plaintext: plaintext, gap: 0 }];',
      ),
    ],
    rather: ["drop", "emit", "listen"],
  },
  {
    without: "an agent takes a new seq for every seal",
    patches: [patch(AGENT, "++held.sent,", "held.sent < 3 ? ++held.sent : held.sent,")],
    rather: ["call"],
  },
  {
    without: "a client takes a new seq for every seal",
    patches: [patch(CLIENT, "    this.sent++;\n", "    if (this.sent < 3) this.sent++;\n")],
    rather: ["call"],
  },
  {
    without: "a lost packet is sent again only byte for byte (the first ping)",
    patches: [
      patch(
        CLIENT,
        '      return [{ kind: "send", text: this.unanswered }];',
        '      return [\n        {\n          kind: "send",\n          text: this.fullSid === null ? this.unanswered : this.sealNext(jsonBytes(FIRST_PING)),\n        },\n      ];',
      ),
    ],
    rather: ["while", "moment"],
  },
  {
    without: "a lost packet is sent again only byte for byte (a call)",
    patches: [
      patch(
        CALLS,
        "    for (const { text } of this.outstanding.values()) this.host.send(this, text);\n",
        "    for (const { call } of [...this.outstanding.values()]) if (call !== null) this.send(call);\n",
      ),
    ],
    rather: ["lie", "call"],
  },
];

const BOUNDS: readonly Mutant[] = [
  {
    without: "sids nobody holds cost cryptography at a bounded rate",
    patches: [
      patch(
        AGENT,
        "epoch === null ? OPENINGS : FIRSTS, now)",
        "FIRSTS, epoch === null ? Infinity : now)",
      ),
    ],
    instead: {
      check: "unheldIsBounded",
      because: "it takes hundreds of openings within a second, and breaks nothing but patience",
    },
  },
  {
    without: "first packets are opened at a bounded rate",
    patches: [
      patch(
        AGENT,
        "!this.buckets.take(epoch === null ? OPENINGS : FIRSTS, now)",
        "epoch === null && !this.buckets.take(OPENINGS, now)",
      ),
    ],
    instead: { check: "firstsAreBounded", because: "it takes hundreds of packets within a second" },
  },
  {
    without: "an A is looked up at a bounded rate",
    patches: [
      patch(AGENT, 'if (!this.buckets.take(LOOKUPS, now)) return this.refuse("rate");', ""),
    ],
    instead: {
      check: "lookupsAreBounded",
      because: "it takes hundreds of packets within a second",
    },
  },
  {
    without: "forged packets of a held sid are opened at a bounded rate",
    patches: [patch(AGENT, "if (epoch === null) this.buckets.take(FORGERIES, now);", "")],
    instead: {
      check: "forgeriesAreBounded",
      because: "it takes hundreds of packets within a second",
    },
  },
  {
    without: "an agent's seq ends at 2^32 - 1",
    patches: [patch(AGENT, " || held.sent >= MAX_SEQ", "")],
    instead: { check: "seqEnds", because: "it takes 4,294,967,295 packets in one session" },
  },
  {
    without: "a client's seq ends at 2^32 - 1",
    patches: [patch(CLIENT, " && this.sent < MAX_SEQ", "")],
    instead: { check: "seqEnds", because: "it takes 4,294,967,295 packets in one session" },
  },
];

const CLIENTS: readonly Mutant[] = [
  {
    without: "a client takes one answer for a C",
    patches: [
      patch(
        CLIENT,
        'if (this.state !== "opening") return this.abandon("otherAnswer", now);\n    this.move("answer");',
        'if (this.state === "opening") this.move("answer");',
      ),
    ],
    rather: ["replayOpening", "replayAnswer"],
  },
  {
    without: "a client abandons its C after another answer",
    patches: [
      patch(CLIENT, 'return this.abandon("otherAnswer", now);', 'return this.refuse("repeat");'),
    ],
    rather: ["restart", "replayOpening"],
  },
  {
    without: "a C that was abandoned is never used again",
    patches: [
      patch(CLIENT, "const c = toBase64url(this.random(16));", 'const c = "C".repeat(22);'),
    ],
    rather: ["restart", "call"],
  },
  {
    without: "a client sends nothing but a ping before the pong",
    patches: [
      patch(
        CLIENT,
        "    return this.awaitAnswer(this.sealNext(this.firstPlaintext()), now);\n",
        '    this.move("pong");\n    return this.awaitAnswer(this.sealNext(this.firstPlaintext()), now).concat([\n      { kind: "opened", sid: packet.sid, gap: 0 },\n    ]);\n',
      ),
    ],
    rather: ["call"],
  },
  {
    without: "packets of an abandoned sid are dropped",
    patches: [
      patch(
        CLIENT,
        '    if (packet.v !== this.version) return this.refuse("version");\n',
        '    if (packet.v !== this.version) return this.refuse("version");\n    const old = deriveSessionKeys(this.suite, this.prk, this.version, packet.sid);\n    const late = packet.first === this.c || packet.seq === 0 ? null : openPacket(this.suite, old.a2c, packet);\n    if (late !== null) return [{ kind: "message", plaintext: late, gap: 0 }];\n',
      ),
      patch(
        "client-sdk/src/core/client-core.ts",
        "owner?.receive(message.text, early);",
        "if (owner !== undefined) owner.receive(message.text, early);\n      else for (const other of this.owners.values()) other.receive(message.text);",
      ),
    ],
    rather: ["replay", "restart"],
  },
  {
    without: "only idempotent calls are made again after their session",
    patches: [patch(PEER, "if (call.idempotent && !call.orphaned) {", "if (!call.orphaned) {")],
    rather: ["restart", "call", "cutLink"],
  },
  {
    without: "a session in which a call passed its deadline is given up",
    patches: [patch(PEER, '    session.leave("a call passed its deadline");\n', "")],
    instead: {
      check: "deadlineEndsTheSession",
      because:
        "ids are not reused in a session, so a late answer finds no call: a second line of defence",
    },
  },
];

const LEAVING: readonly Mutant[] = [
  {
    without: "an agent forgets a session whose client left",
    patches: [patch(CORE, "    this.sessions.close(context.sid);\n", "")],
    rather: ["leave", "call", "drop"],
  },
  {
    without: "a client sends nothing in a session that it left",
    patches: [patch(CALLS, "    this.giveUp(reason);\n", "")],
    rather: ["call", "while"],
  },
  {
    without: "an agent says so on the session that it drops",
    patches: [patch(AGENT, "this.seal(sid, asciiBytes(CLOSE_NOTICE))", "null as string | null")],
    rather: ["leave", "call", "drop"],
  },
  {
    without: "only a first packet whose tag verified makes room",
    patches: [
      patch(
        AGENT,
        "    const plaintext = this.open(held, packet);\n",
        "    if (epoch !== null) this.makePlace();\n    const plaintext = this.open(held, packet);\n",
      ),
    ],
    instead: {
      check: "forgedFirstMakesNoRoom",
      because: "it takes a bit flipped in a first packet while the table is full",
    },
  },
  {
    without: "an opening that is answered makes no room",
    patches: [
      patch(
        AGENT,
        "    const session = held === null ? this.offer(first) : held;\n",
        "    if (held === null) this.makePlace();\n    const session = held === null ? this.offer(first) : held;\n",
      ),
    ],
    rather: ["leave", "call", "replayOpening"],
  },
  {
    without: "a client knows its session for closed",
    patches: [
      patch(CALLS, "if (said.event === CLOSE_METHOD) this.droppedByAgent();\n      else if", "if"),
    ],
    instead: {
      check: "closedSessionIsNotUsed",
      because:
        "a client that goes on is answered with another A, which ends the session just as well",
    },
  },
];

const KEY_RULES: readonly Mutant[] = [
  {
    without: "keys depend on the sid",
    patches: [patch(KEYS, "`${SESSION_LABEL + v}|${sid}`", "`${SESSION_LABEL + v}|`")],
    rather: ["call"],
  },
  {
    without: "keys depend on the direction",
    patches: [
      patch(
        KEYS,
        "a2c: makeDirection(suite, v, okm.subarray(DIRECTION_BYTES)),",
        "a2c: makeDirection(suite, v, okm),",
      ),
      patch(
        SMALL_AGENT,
        "(held.keys as Uint8Array).subarray(DIRECTION_BYTES)",
        "held.keys as Uint8Array",
      ),
    ],
    rather: ["call"],
  },
  {
    without: "keys depend on the agent_id",
    patches: [patch(SECRET_KEYS, "asciiBytes(SALT_LABEL + agentId)", "asciiBytes(SALT_LABEL)")],
    rather: ["spliceParty"],
  },
  {
    without: "keys depend on the secret",
    patches: [patch(SECRET_KEYS, "utf8Bytes(agentToken))", "new Uint8Array(32))")],
    rather: ["spliceParty", "loseMedium"],
  },
  {
    without: "keys depend on the suite",
    patches: [patch(KEYS, "`${SESSION_LABEL + v}|${sid}`", "`${SESSION_LABEL}|${sid}`")],
    instead: {
      check: "keysAreAllDifferent",
      because: "no C is ever used with both suites, and the AAD still names the suite",
    },
  },
  {
    without: "the AAD names the session",
    patches: [patch(PACKET, "asciiBytes(`${v}|${sid}|${seq}`)", "asciiBytes(`${v}|${seq}`)")],
    instead: {
      check: "aadIsComplete",
      because: "the key depends on the sid already: the AAD is a second line of defence",
    },
  },
  {
    without: "the AAD names the seq",
    patches: [patch(PACKET, "asciiBytes(`${v}|${sid}|${seq}`)", "asciiBytes(`${v}|${sid}`)")],
    instead: {
      check: "aadIsComplete",
      because: "the nonce depends on the seq already: the AAD is a second line of defence",
    },
  },
  {
    without: "the nonce depends on the seq",
    patches: [patch(PACKET, " ^ (seq & 255);", ";")],
    rather: ["call"],
  },
  ...["seq >>> 24", "(seq >>> 16) & 255", "(seq >>> 8) & 255"].map(
    (byte): Mutant => ({
      without: `the nonce depends on ${byte}`,
      patches: [patch(PACKET, ` ^ (${byte});`, ";")],
      instead: {
        check: "noncesAreAllDifferent",
        because: "it takes more than 255 packets in one session, or 16,777,215",
      },
    }),
  ),
];

const FORMS: readonly Mutant[] = [
  {
    without: "the literal of seq counts",
    patches: [patch(PACKET, "rawMember(rest, FIELD_SEQ) !== String(seq)", "false")],
    rather: ["malform"],
  },
  {
    without: "p is canonical base64url",
    patches: [IN_LOOP, patch(BASE64, "(held & ((1 << bits) - 1)) === 0 ? bytes : null", "bytes")],
    rather: ["rewriteBase64"],
  },
  {
    without: "characters outside the alphabet are refused",
    patches: [
      IN_LOOP,
      patch(BASE64, "if ((length & 3) === 1 || !isBase64urlText(text)) return null;", ""),
    ],
    rather: ["rewriteBase64"],
  },
];

const PUSHES: readonly Mutant[] = [
  {
    without: "a pushed program is compared by its hash before it counts",
    patches: [patch(PUSH, "const digest = port.sha256(slot);", "const digest = transfer.sha256;")],
    rather: ["push", "moment"],
  },
  {
    without: "a push never writes to the program that runs",
    patches: [
      patch(
        PUSH,
        "  const slot = 1 - state.slot;\n  const at",
        "  const slot = state.slot;\n  const at",
      ),
    ],
    rather: ["push", "restart", "behave"],
  },
  {
    without: "the record says that a trial was started",
    patches: [
      patch(PUSH, "Object.assign({}, trial, { started: true })", "Object.assign({}, trial)"),
    ],
    rather: ["push", "restart", "behave"],
  },
  {
    without: "a trial that restarts unconfirmed has failed",
    patches: [patch(PUSH, "if (trial.started) return", "if (trial === null) return")],
    rather: ["push", "restart", "behave"],
  },
  {
    without: "a trial that failed is not kept",
    patches: [
      patch(
        PUSH,
        "writePush(storage, state, { trial: null, failed: failed });",
        "writePush(storage, state, { slot: slotOf(state), id: failed.id, trial: null, failed: failed });",
      ),
    ],
    rather: ["push", "behave"],
  },
  {
    without: "an agent that runs a trial takes no other push",
    patches: [
      patch(PUSH, "else if (state.trial === null && !port.onTrial) {", "else if (state.n >= 0) {"),
    ],
    rather: ["push", "behave", "moment"],
  },
  {
    without: "only what is on trial can be confirmed",
    patches: [patch(PUSH, " || trial.id !== id) throw", ") throw")],
    instead: {
      check: "confirmNamesTheTrial",
      because: "a confirmation is sealed in a session, which ends with the trial that it is for",
    },
  },
  ...[
    {
      without: "a device with a push key takes only programs that were proven with it",
      patches: [
        patch(
          PROOFS,
          "    !equalTexts(proof,",
          "    !equalTexts(proof, proof) && !equalTexts(proof,",
        ),
      ],
    },
    {
      without: "a proof is good for one push",
      patches: [patch(PROOFS, "if (serial <= last)", "if (serial < 0)")],
    },
    {
      without: "the last serial outlives a restart",
      patches: [patch(PUSH, "if (key !== null) keepSerial(", "if (key === null) keepSerial(")],
    },
  ].map((mutant) => ({
    ...mutant,
    instead: { check: "programsAreProven" as const, because: "nobody there has a push key" },
  })),
];

const EXCHANGE = {
  check: "forwardConforms",
  because: "it takes somebody who has the secret, and the relay has not",
} as const;

/** Those that the conformance of suites "3" and "4" must notice in every engine of agents. */
export const AGENT_EXCHANGES: readonly Mutant[] = [
  {
    without: "dh moves whenever a session is stored",
    patches: [patch(FORWARD_AGENT, "    this.dh = nextDh(this.suite, dh);\n    dh.fill(0);\n", "")],
    instead: EXCHANGE,
  },
  {
    without: "an agent refuses a shared value of zeros",
    patches: [patch(FORWARD_AGENT, "= pair.shared(x);", "= pair.shared(x) ?? x.map(() => 0);")],
    instead: EXCHANGE,
  },
  {
    without: "an agent's keys are new from seq 2 on",
    patches: [patch(FORWARD_AGENT, "    session.keys = agreed.keys;\n", "")],
    instead: EXCHANGE,
  },
  {
    without: "a packet above seq 1 of a sid that is not held is not opened",
    patches: [
      patch(
        FORWARD_AGENT,
        '    if (packet.seq > EXCHANGE_SEQ) return this.refuse("replay");\n',
        "",
      ),
      patch(FORWARD_AGENT, "packet.seq === EXCHANGE_SEQ) {", "packet.seq > 0) {"),
    ],
    instead: EXCHANGE,
  },
];

/** The same of clients. */
export const CLIENT_EXCHANGES: readonly Mutant[] = [
  {
    without: "a client refuses a shared value of zeros",
    patches: [patch(FORWARD_CLIENT, "= pair.shared(y);", "= pair.shared(y) ?? y.map(() => 0);")],
    instead: EXCHANGE,
  },
  {
    without: "a client checks that the agent has the same keys",
    patches: [
      patch(
        FORWARD_CLIENT,
        "    if (!equalBytes(keys.confirm, plaintext.subarray(KEY_BYTES))) return null;\n",
        "",
      ),
    ],
    instead: EXCHANGE,
  },
  {
    without: "a client's keys are new from seq 2 on",
    patches: [patch(FORWARD_CLIENT, "    this.keys = keys;\n", "")],
    instead: EXCHANGE,
  },
  {
    without: "a client draws X anew for each session",
    patches: [
      patch(
        FORWARD_CLIENT,
        "const own = this.random(KEY_BYTES);",
        "const own = new Uint8Array(KEY_BYTES);",
      ),
    ],
    instead: EXCHANGE,
  },
];

const SEEDS: readonly Mutant[] = [
  {
    without: "the seed is replaced before a start uses it",
    patches: [
      patch(BOOT_SEED, "  return withSeed(hash, next);", "  return withSeed(hash, seedOf(owner));"),
    ],
    instead: {
      check: "seedIsReplaced",
      because: "the count is in the epoch too: only a thief of the medium gains by it",
    },
  },
];

export const MUTANTS: readonly Mutant[] = [
  ...BOOT_COUNT,
  ...EPOCHS,
  ...MARKS,
  ...BOUNDS,
  ...CLIENTS,
  ...LEAVING,
  ...KEY_RULES,
  ...FORMS,
  ...PUSHES,
  ...AGENT_EXCHANGES,
  ...CLIENT_EXCHANGES,
  ...SEEDS,
];
