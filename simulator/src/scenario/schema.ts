/**
 * A scenario: which devices, which clients, what goes wrong when, and what must hold. The single
 * definition of its shape: the type, the validator and the JSON Schema for editors (`blindrelay-sim
 * schema`) are derived from it.
 */
import { type Static, type TProperties, type TSchema, Type } from "typebox";
import { MAX_DEVICES, MAX_SEED } from "./limits.ts";
import { BYTE_RATE, BYTES, DURATION, IDENTIFIER, INSTANT, RATE, SHARE } from "./units.ts";

const strict = { additionalProperties: false } as const;
const text = (pattern: string, description: string, example: string) =>
  Type.String({ pattern, description, examples: [example] });
const duration = (description: string) => text(DURATION, description, "10m");
const maybeDuration = (description: string) => Type.Optional(duration(description));
const share = (description: string) => text(SHARE, description, "10%");
const size = (description: string) => text(BYTES, description, "1MB");
const name = (description: string) =>
  Type.String({ pattern: "^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$", description });

const word = (description: string) => Type.Optional(Type.String({ minLength: 1, description }));
const whole = (minimum: number, maximum: number, description: string) =>
  Type.Optional(Type.Integer({ minimum, maximum, description }));
const flag = (description: string) => Type.Optional(Type.Boolean({ description }));
const anything = (description: string) => Type.Optional(Type.Unknown({ description }));

const account = name(
  "The account that owns them. Calls to another account's devices fail. Default: sim.",
);

export const MAX_NODES = 9;
export const ENGINES = ["node", "xs", "espruino"] as const;
const LIMITS = ["node", "board"] as const;
/** Each is a process of its own. */
export const MAX_BOARDS = 100;
export const KIND_NAMES = ["sensor", "valve", "echo", "busy", "bridge"] as const;
export const DRIVER_KINDS = [
  "subscriber",
  "streams",
  "serial",
  "flood",
  "garbage",
  "bindings",
  "slow",
  "takeover",
] as const;

/** What a hostile relay does to the packets that it carries. */
export const ATTACKS = ["drop", "duplicate", "reorder", "replay", "forge"] as const;
export type Attack = (typeof ATTACKS)[number];

/** The kind of the devices that a driver uses; the others have agents of their own. */
export const NEEDED_KIND: { readonly [driver: string]: string } = {
  subscriber: "busy",
  streams: "busy",
  serial: "bridge",
};

export const Network = Type.Object(
  {
    latency: maybeDuration("One way, between the peer and the relay. Default: 20ms."),
    jitter: maybeDuration("Added to each message's latency: from 0 to this. Default: 5ms."),
    bandwidth: Type.Optional(text(BYTE_RATE, "Towards the peer. Default: unlimited.", "16KB/s")),
  },
  { ...strict, description: "The network between a peer and the relay. Messages stay in order." },
);

export const DeviceGroup = Type.Object(
  {
    group: name("Name of these devices for clients, faults and metrics."),
    count: Type.Integer({ minimum: 1, maximum: MAX_DEVICES }),
    first: whole(
      1,
      MAX_DEVICES,
      "Number of the first device, so that a smaller group has the same devices. Default: 1.",
    ),
    program: Type.Optional(
      Type.String({ description: "A device program, relative to this file. Or give a kind." }),
    ),
    kind: Type.Optional(
      Type.Enum([...KIND_NAMES], { description: "A bundled program, whose answers are checked." }),
    ),
    start: Type.Optional(
      Type.Object(
        {
          at: maybeDuration("When the first one is switched on. Default: 0s."),
          over: maybeDuration("All start within this time, spread at random. Default: 0s."),
        },
        strict,
      ),
    ),
    network: Type.Optional(Network),
    address: word("All connect from this address. Default: each device has its own."),
    clock: Type.Optional(
      Type.Object(
        {
          skew: maybeDuration("Wall clocks are wrong by up to this, either way."),
          drift_ppm: Type.Optional(
            Type.Number({
              minimum: 0,
              maximum: 10_000,
              description: "Timers run fast or slow by up to this many parts per million.",
            }),
          ),
        },
        strict,
      ),
    ),
    packet_version: Type.Optional(
      Type.Enum(["1", "2", "3", "4"], {
        description:
          'Default: "1". With "3" and "4" each session exchanges keys; in the virtual world half of such devices have a key of their own, which their clients know.',
      }),
    ),
    engine: Type.Optional(
      Type.Enum([...ENGINES], {
        description:
          "The engine that runs them; xs and espruino in the live world only. Default: node.",
      }),
    ),
    limits: Type.Optional(
      Type.Enum([...LIMITS], {
        description:
          "How many sessions an agent holds, and openings it answers a second: node 64 and 200, board 8 and 4. Default: node.",
      }),
    ),
    account: Type.Optional(account),
  },
  strict,
);

export const Step = Type.Object(
  {
    call: word("A method to call."),
    event: word(
      "An event of the device to wait for. Those count that have arrived since the sequence began.",
    ),
    read: word(
      "A method that opens a byte stream from the device, which is read to its end. The answer is { bytes }.",
    ),
    write: word("A method that opens a byte stream to the device. The answer is { bytes }."),
    bytes: Type.Optional(size("How much to write.")),
    params: anything(
      'An object or an array. A text such as "$lease.token" in it is taken from the answer of an earlier step (as: lease); "$$" begins a text that begins with "$".',
    ),
    expect: anything("The correct answer. Default: any answer is correct."),
    check: word("Holds for the correct answer: answer.percent == 40 && answer.at > lease.at"),
    fails: word("It must fail with this code, such as REMOTE 7 or AGENT_OFFLINE."),
    as: Type.Optional(text(IDENTIFIER, "Names its answer for later steps.", "lease")),
    client: whole(1, 1000, "Which client of the group, from the device's own on. Default: 1."),
    after: maybeDuration("How long after the step before it. Default: 0s."),
    timeout: maybeDuration("Default: that of the clients."),
  },
  { ...strict, description: "One step of a sequence, which counts as a call." },
);

export const ClientGroup = Type.Object(
  {
    name: Type.Optional(name("Name of these clients for faults. Default: clients-1, clients-2, …")),
    count: whole(1, 1000, "The group's devices are divided among them. Default: 1."),
    devices: name("The group of devices that they call."),
    call: word("The method. Default, for a bundled kind: the kind's own questions."),
    params: anything("An object or an array."),
    expect: anything("The correct result. Default: any result is correct."),
    steps: Type.Optional(
      Type.Array(Step, {
        minItems: 1,
        maxItems: 100,
        description:
          "A sequence in place of one call; each device's begins as a call would. It ends with the first step that is not as it must be.",
      }),
    ),
    every: maybeDuration(
      "Closed loop: each device is called this often; a call waits for the previous one.",
    ),
    rate: Type.Optional(
      text(
        RATE,
        "Open loop: a fixed rate of calls over all devices, regardless of their outcome.",
        "20/s",
      ),
    ),
    to_rate: Type.Optional(
      text(
        RATE,
        "With rate: it grows, or falls, evenly to this from the first call to the last. Default: it stays.",
        "200/s",
      ),
    ),
    calls: whole(
      1,
      100_000,
      "As many calls to each device, one after another, as soon as the fleet is online. The run ends once all are made.",
    ),
    at_once: whole(1, 10_000, "With calls: how many are in flight at a time. Default: 64."),
    from: maybeDuration(
      "When calls begin. Default: 10 s after the group's last device was switched on; with calls: at once.",
    ),
    until: maybeDuration("When calls end. Default: with the run."),
    timeout: maybeDuration("Of one call. Default: 30s."),
    idempotent: flag("A call may be executed twice."),
    wait_for_agent: flag("A call waits for an agent that is offline."),
    abort_after: maybeDuration(
      "Each call is given up after up to this, at random. Default: never.",
    ),
    leaves: flag(
      "A client leaves once its calls have ended, and comes for the next one, as a command does.",
    ),
    presence: flag("Subscribe to presence."),
    network: Type.Optional(Network),
    account: Type.Optional(account),
  },
  strict,
);

export const Driver = Type.Object(
  {
    kind: Type.Enum([...DRIVER_KINDS], {
      description:
        "subscriber and streams: of devices of the kind busy; serial: of the kind bridge; the others speak the protocol without an SDK, and reach its limits.",
    }),
    devices: Type.Optional(name("For subscriber, streams and serial: the group of devices.")),
    from: maybeDuration("When it begins. Default: 15s."),
    every: maybeDuration("How long it rests before it begins again. Default: 60s."),
  },
  { ...strict, description: "Peers that do more than call." },
);

const at = duration("When it begins.");
const during = duration("How long it lasts.");
const targets = {
  devices: Type.Optional(name("A group of devices. Default: all devices.")),
  clients: Type.Optional(name("A group of clients, in place of devices.")),
  share: Type.Optional(share("Share of them, drawn at random; at least one. Default: 100%.")),
};
const node = whole(1, MAX_NODES, "Which node. Default: 1.");
const deviceTargets = { devices: targets.devices, share: targets.share };
/** `live`: both worlds can play it, not only the virtual one. */
const fault = (live: boolean) => (description: string, fields: TProperties) =>
  ({ live, description, fields }) as const;
const anywhere = fault(true);
const virtual = fault(false);

const KINDS = {
  "net.cut": anywhere(
    "Links end at once and no new ones can be made while it lasts (default: 0s).",
    { ...targets, for: Type.Optional(during) },
  ),
  "net.partition": anywhere(
    "Nothing gets through and neither end notices; delayed packets arrive afterwards.",
    { ...targets, for: during },
  ),
  "net.half_open": anywhere("The peer's end of the link is gone; the relay does not notice.", {
    ...targets,
  }),
  "net.delay": anywhere("Changes latency and jitter for a while.", {
    ...targets,
    for: during,
    latency: duration("One way."),
    jitter: maybeDuration("From 0 to this. Default: 0s."),
  }),
  "net.bandwidth": anywhere("Less bandwidth towards the peer for a while.", {
    ...targets,
    for: during,
    bandwidth: text(BYTE_RATE, "Towards the peer.", "1KB/s"),
  }),
  "net.slow_reader": anywhere("The peer reads nothing, so the relay's queue for it fills.", {
    ...targets,
    for: during,
  }),
  "net.corrupt": anywhere("Some messages arrive with characters changed.", {
    ...targets,
    for: during,
    messages: share("Of the messages."),
  }),
  "device.reboot": anywhere(
    "The device loses power and restarts. A device that lost its storage is provisioned again.",
    {
      ...deviceTargets,
      for: maybeDuration("How long it is off. Default: 2s."),
      storage: Type.Optional(Type.Enum(["keep", "lose"])),
    },
  ),
  "device.update": virtual(
    "A program is pushed, which is confirmed if it is online and answers; else the device rolls back.",
    {
      ...deviceTargets,
      program: Type.Optional(
        Type.String({ description: "Relative to this file. Default: the one that it has." }),
      ),
      trial: maybeDuration("Whole seconds. Default: 60s."),
    },
  ),
  "device.rekey": virtual(
    "An owner gives the device a new secret over the air, and tells its clients. Several at once compete.",
    {
      ...deviceTargets,
      for: maybeDuration(
        "The owner is interrupted and comes back, at random, while this lasts. Default: 30s.",
      ),
    },
  ),
  "storage.torn": virtual(
    "While it lasts, a device loses power in the middle of the next text that its program stores, for 2 s.",
    {
      ...deviceTargets,
      for: during,
      boot: flag("It restarts instead, and loses power while it raises its boot count."),
    },
  ),
  "storage.full": virtual("Nothing more fits: storing a text throws.", {
    ...deviceTargets,
    for: during,
  }),
  "clock.skew": virtual("Wall clocks of devices jump.", {
    ...deviceTargets,
    by: duration("How far."),
    back: flag("Into the past."),
  }),
  "relay.restart": anywhere("The relay drains, ends, and starts again (rolling deployment).", {
    for: maybeDuration("How long the relay is down after the drain. Default: 1s."),
    node,
  }),
  "relay.crash": anywhere("The relay crashes; writes that its store had not flushed are lost.", {
    for: maybeDuration("How long the relay is down. Default: 2s."),
    node,
  }),
  "relay.freeze": virtual("A node's process is frozen, and nobody notices at first.", {
    for: maybeDuration("Default: 30s."),
    node,
  }),
  "relay.skew": virtual("The wall clock of a node jumps.", {
    by: duration("How far."),
    back: flag("Into the past."),
    node,
  }),
  "bus.away": virtual("The bus between the nodes is gone, and they notice.", {
    for: during,
  }),
  "bus.partition": virtual("Nothing gets through between a node and the bus.", {
    for: during,
    node,
  }),
  "bus.delay": virtual("Changes latency and jitter of the bus for a while.", {
    for: during,
    latency: duration("One way, between a node and the bus."),
    jitter: maybeDuration("From 0 to this. Default: 0s."),
  }),
  "bus.loss": virtual("The bus loses messages.", {
    for: during,
    messages: share("Of the messages."),
  }),
  "bus.repeat": virtual("The bus delivers messages twice.", {
    for: during,
    messages: share("Of the messages."),
  }),
  "relay.hostile": virtual("The relay attacks the packets that it carries.", {
    for: during,
    attack: Type.Enum([...ATTACKS]),
    messages: share("Of the packets."),
  }),
  "store.slow": virtual("The relay's store answers slowly.", {
    for: during,
    latency: duration("Of one look-up."),
  }),
  "store.away": virtual("The relay's store fails every request.", { for: during }),
  "store.unsure": virtual("The store executes a request, but its answer is lost.", {
    for: during,
    share: share("Of the requests."),
  }),
  "operator.rotate": anywhere(
    "Relay tokens of devices are rotated; each device gets its new one after a while.",
    {
      ...deviceTargets,
      for: maybeDuration("Until the device has its new token. Default: 5s."),
    },
  ),
};

export type FaultKind = keyof typeof KINDS;

interface FaultEntry {
  readonly live: boolean;
  readonly schema: TSchema;
}

/** Every fault: its fields, and whether the live world can play it too. */
export const FAULTS = Object.fromEntries(
  Object.entries(KINDS).map(([kind, { live, description, fields }]): [string, FaultEntry] => {
    const members = { at, kind: Type.Literal(kind), ...fields };
    return [kind, { live, schema: Type.Object(members, { ...strict, description }) }];
  }),
) as Record<FaultKind, FaultEntry>;

/** All fields that a fault may have; FAULTS lists which belong to which kind. */
export interface Fault {
  at: string;
  kind: FaultKind;
  devices?: string;
  clients?: string;
  share?: string;
  for?: string;
  latency?: string;
  jitter?: string;
  bandwidth?: string;
  messages?: string;
  storage?: "keep" | "lose";
  program?: string;
  trial?: string;
  boot?: boolean;
  by?: string;
  back?: boolean;
  /** From 1. */
  node?: number;
  attack?: Attack;
}

const expression = Type.String({
  minLength: 1,
  description:
    "Such as: p(99, call.latency_ms) < 250, rate(call.failed) < 0.001, p(95, call.latency_ms{group=pumps,method=pump.state}) < 900",
});

export const ScenarioSchema = Type.Object(
  {
    $schema: Type.Optional(Type.String()),
    name: Type.String({ minLength: 1, maxLength: 200 }),
    description: Type.Optional(Type.String()),
    seed: whole(0, MAX_SEED, "Default: 1."),
    duration: duration("Of the whole run."),
    timezone: word("Of the devices' local time, such as Europe/Berlin. Default: UTC."),
    start: Type.Optional(
      text(
        INSTANT,
        "The wall clocks' time at the start. Default: 2026-01-01T00:00:00Z.",
        "2026-03-29T00:30:00Z",
      ),
    ),
    world: Type.Optional(Type.Enum(["virtual", "live"], { description: "Default: virtual." })),
    network: Type.Optional(Network),
    relay: Type.Optional(
      Type.Object(
        {
          nodes: whole(
            1,
            MAX_NODES,
            "Behind one load balancer, with a bus between them. Default: 1.",
          ),
          session_ttl: maybeDuration("Life of a session token. Default: 24h."),
          outbox: Type.Optional(size("Queue for one connection. Default: 1MB.")),
          store_latency: maybeDuration("Of one look-up. Default: 1ms."),
        },
        { ...strict, description: "Of the virtual world's relay." },
      ),
    ),
    devices: Type.Array(DeviceGroup, { minItems: 1, maxItems: 100 }),
    clients: Type.Optional(Type.Array(ClientGroup, { maxItems: 100 })),
    drivers: Type.Optional(Type.Array(Driver, { maxItems: 100 })),
    same: flag(
      "Also play the run a second time, with every ping, with a model of cryptography, and (one node, no session_ttl) with the relay's own store: all take the same course.",
    ),
    phases: Type.Optional(
      Type.Array(
        Type.Object({ name: Type.String({ minLength: 1 }), until: duration("Its end.") }, strict),
        {
          description:
            "Names for parts of the run, shown in the report; thresholds may be about one.",
        },
      ),
    ),
    faults: Type.Optional(
      Type.Array(Type.Union(Object.values(FAULTS).map(({ schema }) => schema)), {
        maxItems: 10_000,
      }),
    ),
    allow: Type.Optional(
      Type.Array(
        Type.Object(
          {
            code: word(
              `Calls that end with it, such as AGENT_OFFLINE, REMOTE -32601, WRONG_ANSWER, NOT_MADE or OPEN_AT_END. Default: any. PROGRAM: what device programs throw and do not catch.`,
            ),
            rate: Type.Optional(share("Share of all planned calls. Default: all of that code.")),
          },
          { ...strict, minProperties: 1 },
        ),
        {
          maxItems: 100,
          description: "Which calls may fail without breaking the run. Default: none.",
        },
      ),
    ),
    stubs: Type.Optional(
      Type.String({
        description:
          "A file that exports (device) => ({ digitalRead: … }), the hardware of each device, relative to this file. Under it are bundled stubs of Espruino's and Moddable's globals.",
      }),
    ),
    invariants: Type.Optional(
      Type.Array(
        Type.Object(
          {
            devices: name("The group of devices whose programs promise it."),
            always: Type.String({
              minLength: 1,
              description:
                "Over what they expose (agent.expose), checked after every event: state.open + state.closed == 1",
            }),
          },
          strict,
        ),
        { maxItems: 100 },
      ),
    ),
    thresholds: Type.Optional(
      Type.Array(
        Type.Union([
          expression,
          Type.Object(
            {
              expression,
              abort: flag("End the run as soon as it fails."),
              after: maybeDuration("The run is not aborted before this time. Default: 0s."),
            },
            strict,
          ),
        ]),
      ),
    ),
  },
  { ...strict, title: "A scenario of the blindrelay simulator" },
);

export type NetworkSpec = Static<typeof Network>;
export type DeviceGroupSpec = Static<typeof DeviceGroup>;
export type StepSpec = Static<typeof Step>;
export type ClientGroupSpec = Static<typeof ClientGroup>;
export type DriverSpec = Static<typeof Driver>;
export type ThresholdSpec = string | { expression: string; abort?: boolean; after?: string };

/** As `allow` and reports name what device programs throw and do not catch. */
export const PROGRAM = "PROGRAM";

/** Calls that may fail: those of a code, a share of all planned ones, or both. */
export type Allowed = NonNullable<Scenario["allow"]>[number];

/**
 * What device programs promise. In TypeScript also a function of everything that a device exposes:
 * `(exposed, device) => exposed.state.open < 2`; it sees nothing else of its file.
 */
export interface Invariant {
  devices: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the device exposes
  always: string | ((exposed: any, device: { id: string; group: string }) => unknown);
}

type Loose = "$schema" | "faults" | "invariants" | "thresholds";

export interface Scenario extends Omit<Static<typeof ScenarioSchema>, Loose> {
  faults?: Fault[];
  invariants?: Invariant[];
  thresholds?: ThresholdSpec[];
}

/** The JSON Schema, for editors: `# yaml-language-server: $schema=./scenario.schema.json`. */
export const jsonSchema = (): object => ({
  $schema: "https://json-schema.org/draft/2020-12/schema",
  ...JSON.parse(JSON.stringify(ScenarioSchema)),
});

/** For scenarios in TypeScript or JavaScript: provides the type to the editor. */
export const defineScenario = (scenario: Scenario): Scenario => scenario;
