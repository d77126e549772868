/**
 * Messages at random to an agent on the chip: from a relay before and after the login, and sealed
 * ones from a client that has the secret. Whatever arrives, the agent must go on and answer.
 */
import { randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import type { Link, LinkEvents } from "@blindrelay/agent-sdk";
import { seededRandom } from "@blindrelay/agent-sdk/memory";
import { systemTimer } from "@blindrelay/agent-sdk/node";
import { type PausableLink, SerialCarrier } from "@blindrelay/agent-sdk/serial";
import {
  type ChipBoot,
  type ChipFigures,
  type ChipStart,
  figuresOf,
} from "@blindrelay/agent-sdk/testing/chip/chip";
import { MAX_MESSAGE_BYTES, makeToken } from "@blindrelay/protocol";
import { asciiBytes, asciiText } from "@blindrelay/protocol/crypto";
import {
  type ClientEffect,
  ClientSession,
  DEFAULT_CLIENT_TIMINGS,
} from "@blindrelay/protocol/session";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { type FakeLink, FakeRelay } from "@blindrelay/protocol/testing/fake-relay";
import { message } from "../overload/fuzz/messages.ts";
import { Random } from "../overload/fuzz/random.ts";
import { CHIP_LIMITS, type ChipFolder } from "./house.ts";

const AGENT_ID = "chip";
const AGENT_TOKEN = makeToken("e2e", new Uint8Array(32).fill(7));
/** So few that all are held soon, and the heap has its level. */
const SESSIONS = 4;
const BATCH = 20;
/** Batches between two sealed calls. */
const BATCHES = 5;
/** How far the heap may be from its level, such as by a session's larger numbers. */
const SLACK_BYTES = 2048;
/** A machine that is busy with other things emulates slowly. */
const PATIENCE_MS = 240_000;
const ASK_AGAIN_MS = 5000;
const POLL_MS = 2;

/** The chip's line in this process, with a relay that says what it is told to. */
export class FuzzedChip {
  readonly boot: ChipBoot;
  /** Said to each link before its login is accepted. */
  beforeLogin: () => readonly string[] = () => [];
  private readonly relay = new FakeRelay({
    auth: (link) => {
      for (const text of this.beforeLogin()) link.say(text);
      link.accept("session");
    },
    packet: (_link, { text }) => this.carry(this.session?.receive(text, this.timer.now()) ?? []),
  });
  private readonly timer = systemTimer();
  private readonly carrier: SerialCarrier;
  private session: ClientSession | null = null;
  private sessions = 0;
  private calls = 100;
  private events: LinkEvents | null = null;
  private sealed = "";
  private readonly answers = new Map<unknown, unknown>();
  private over = false;

  private constructor(boot: ChipBoot, line: NodeJS.WritableStream & { writableLength: number }) {
    this.boot = boot;
    void boot.ended.then(() => {
      this.over = true;
    });
    this.carrier = new SerialCarrier({
      write: (bytes) => line.write(bytes),
      ready: () => line.writableLength < 16_384,
      connect: (events) => this.connect(events),
      timer: this.timer,
      random: (length) => randomBytes(length),
      checksum: (bytes) => crc32(bytes),
      log: () => undefined,
      maxMessage: MAX_MESSAGE_BYTES,
      window: 2 * MAX_MESSAGE_BYTES,
    });
    line.on("data", (bytes: Uint8Array) => this.carrier.receive(bytes));
  }

  static async start(
    folder: ChipFolder,
    image: string,
    more: Partial<ChipStart> = {},
  ): Promise<FuzzedChip> {
    const start: ChipStart = {
      ...{ agentId: AGENT_ID, relayToken: makeToken("agent", new Uint8Array(32)) },
      ...{ agentToken: AGENT_TOKEN, provision: true, ...CHIP_LIMITS },
      ...{ limits: { maxSessions: SESSIONS }, ...more },
    };
    const flash = folder.path(`fuzzed-${Math.random()}`);
    const argument = JSON.stringify(start);
    const boot = await folder.boot({ image, flash, module: "agent", argument });
    return new FuzzedChip(boot, await boot.line());
  }

  private connect(events: LinkEvents): PausableLink {
    const relay = this.relay.attach({
      send: (text) => events.received(text),
      close: (code, reason) => events.closed(code, reason),
    });
    this.events = events;
    setTimeout(() => events.opened());
    const link: Link = {
      send: (text) => relay.receive(text),
      close: (code, reason) => void setTimeout(() => events.closed(code, reason)),
    };
    return { ...link, pause: () => undefined, resume: () => undefined };
  }

  private link(): FakeLink | undefined {
    return this.relay.links.at(-1);
  }

  say(text: string): void {
    this.link()?.say(text);
  }

  /** The relay ends the link; the agent connects again. */
  cut(): void {
    this.events?.closed(1006, "");
  }

  private carry(effects: readonly ClientEffect[]): void {
    for (const effect of effects) {
      if (effect.kind === "send") {
        this.sealed = effect.text;
        this.say(effect.text);
      } else if (effect.kind === "message") {
        const { id, result } = JSON.parse(asciiText(effect.plaintext));
        this.answers.set(id, result);
      }
    }
  }

  /** What the client sealed last. */
  get lastSealed(): string {
    return this.sealed;
  }

  /** Forgets the session: the next call opens another one. */
  leave(): void {
    this.session = null;
  }

  /** Seals for the session, or opens another one. */
  seal(plaintext: Uint8Array): void {
    const sealed = this.session?.seal(plaintext) ?? null;
    if (sealed === null) this.open();
    else this.carry([{ kind: "send", text: sealed }]);
  }

  private open(): void {
    this.sessions++;
    this.session = new ClientSession({
      suite: nodeSuite(),
      random: seededRandom(this.sessions),
      agentId: AGENT_ID,
      agentToken: AGENT_TOKEN,
      version: "1",
      timings: DEFAULT_CLIENT_TIMINGS,
    });
    this.carry(this.session.open(this.timer.now()));
  }

  private async until(done: () => boolean, what: string): Promise<void> {
    const end = performance.now() + PATIENCE_MS;
    while (!done()) {
      if (this.over) throw new Error(`the chip has ended: ${this.boot.output.slice(-300)}`);
      if (performance.now() > end)
        throw new Error(`${what} (client ${this.session?.state}, link ${this.relay.links.length})`);
      this.carry(this.session?.timeout(this.timer.now()) ?? []);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /** Waits until the agent is logged in and has answered a ping. Throws if it does not. */
  async alive(): Promise<void> {
    await this.until(() => this.link()?.credentials != null, "the agent does not log in");
    const link = this.link() as FakeLink;
    // What was said is of no use any more, and an hour of it would fill this process.
    link.messages.length = 0;
    link.texts.length = 0;
    link.say('{"type":"ping"}');
    const pong = (): boolean => link.messages.some(({ kind }) => kind === "pong");
    await this.until(() => pong() || this.link() !== link, "the agent does not answer");
  }

  /** The chip's own figures, by a sealed call. Throws if it is not answered. */
  async figures(): Promise<ChipFigures> {
    this.answers.clear();
    if (this.session === null) this.open();
    const answered = (): boolean => this.answers.size > 0;
    let askAt = 0;
    await this.until(() => {
      for (const [id, result] of this.answers) if (!Array.isArray(result)) this.answers.delete(id);
      if (this.session?.state === "open" && this.timer.now() >= askAt) {
        askAt = this.timer.now() + ASK_AGAIN_MS;
        this.calls++;
        this.seal(asciiBytes(`{"jsonrpc":"2.0","id":${this.calls},"method":"figures"}`));
      }
      return answered();
    }, "the agent does not answer a sealed call");
    return figuresOf([...this.answers.values()][0] as number[]);
  }
}

const VALUES = ["0", "-0", "1e308", "1e999", "-1", "9007199254740993", "0.1", "null", "true", '""'];
const METHODS = ["echo", "system.info", "system.ping", "system.describe", "__proto__", "toString"];

/** A call, or what is none: nested, long, broken, with numbers at their limits. */
const plaintext = (random: Random): Uint8Array => {
  const kind = random.below(6);
  if (kind === 0) return asciiBytes("[".repeat(random.below(2000)));
  if (kind === 1)
    return asciiBytes(
      `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":"${"x".repeat(random.below(3000))}"}}`,
    );
  if (kind === 2) return random.bytes(random.below(500));
  const depth = random.below(40);
  const params = "[".repeat(depth) + random.pick(VALUES) + "]".repeat(depth);
  const id = random.chance(50) ? random.below(9) : random.pick(VALUES);
  const method = random.pick(METHODS);
  const call = `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{"a":${params}}}`;
  if (kind === 3) return asciiBytes(call);
  if (kind === 4) return asciiBytes(`[${call},${call}]`);
  return random.mutate(Buffer.from(call));
};

const manyNames = (count: number): string =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [`name${n}`, n])));

const attack = (chip: FuzzedChip, random: Random): void => {
  const kind = random.below(100);
  if (kind < 30) chip.seal(plaintext(random));
  else if (kind < 32) chip.leave();
  // Sealed, and changed on the way, in an envelope or without.
  else if (kind < 40) chip.say(random.mutate(Buffer.from(chip.lastSealed)).toString("latin1"));
  else chip.say(message(random, [AGENT_ID]));
};

export interface Fuzzed {
  readonly messages: number;
  readonly links: number;
  /** Bytes in use after a collection: with all sessions held, and at most since. */
  readonly level: number;
  readonly highest: number;
  readonly last: ChipFigures;
}

/** Throws for a chip that ends, no longer answers, or keeps memory. */
export const fuzzChip = async (
  chip: FuzzedChip,
  seed: number,
  seconds: number,
): Promise<Fuzzed> => {
  const random = new Random(seed);
  chip.beforeLogin = () => Array.from({ length: BATCH }, () => message(random, [AGENT_ID]));
  await chip.alive();
  for (let n = 0; n < SESSIONS; n++) {
    chip.leave();
    await chip.figures();
  }
  // All that XS may keep of names, it keeps from now on.
  chip.say(manyNames(60));
  chip.seal(asciiBytes(`{"jsonrpc":"2.0","id":1,"method":"echo","params":${manyNames(120)}}`));
  const { live: level } = await chip.figures();
  const end = performance.now() + seconds * 1000;
  let [messages, links, highest] = [0, 1, 0];
  for (;;) {
    for (let batch = 0; batch < BATCHES; batch++) {
      for (let n = 0; n < BATCH; n++) attack(chip, random);
      messages += BATCH;
      await chip.alive();
    }
    const last = await chip.figures();
    highest = Math.max(highest, last.live);
    if (highest > level + SLACK_BYTES)
      throw new Error(`the heap had a level of ${level} bytes, and now ${highest}`);
    if (performance.now() > end) return { messages, links, level, highest, last };
    if (random.chance(10)) {
      chip.cut();
      links++;
    }
  }
};
