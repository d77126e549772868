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
import type { ChipBoot, ChipStart } from "@blindrelay/agent-sdk/testing/chip/chip";
import { MAX_MESSAGE_BYTES, makeToken } from "@blindrelay/protocol";
import { asciiBytes } from "@blindrelay/protocol/crypto";
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
const BATCH = 20;
const PATIENCE_MS = 120_000;
const POLL_MS = 2;

/** The chip's line in this process, with a relay that says what it is told to. */
export class FuzzedChip {
  readonly boot: ChipBoot;
  private readonly relay = new FakeRelay({
    packet: (_link, { text }) => this.carry(this.session?.receive(text, this.timer.now()) ?? []),
  });
  private readonly timer = systemTimer();
  private readonly carrier: SerialCarrier;
  private session: ClientSession | null = null;
  private sessions = 0;
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
      ...{ agentToken: AGENT_TOKEN, provision: true, ...CHIP_LIMITS, ...more },
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

  private carry(effects: readonly ClientEffect[]): void {
    for (const effect of effects) if (effect.kind === "send") this.say(effect.text);
  }

  /** Seals for the session, or opens another one. */
  seal(plaintext: Uint8Array): void {
    if (this.session?.state === "open") {
      const sealed = this.session.seal(plaintext);
      if (sealed !== null) {
        this.say(sealed);
        return;
      }
    }
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
      if (performance.now() > end) throw new Error(what);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /** Waits until the agent is logged in and has answered a ping. Throws if it does not. */
  async alive(): Promise<void> {
    await this.until(() => this.link()?.credentials != null, "the agent does not log in");
    const link = this.link() as FakeLink;
    const pongs = (): number => link.messages.filter(({ kind }) => kind === "pong").length;
    const before = pongs();
    link.say('{"type":"ping"}');
    await this.until(() => pongs() > before || this.link() !== link, "the agent does not answer");
  }
}

/** A call, or what is none: nested, long, broken. */
const plaintext = (random: Random): Uint8Array => {
  const kind = random.below(5);
  if (kind === 0) return asciiBytes("[".repeat(random.below(2000)));
  if (kind === 1)
    return asciiBytes(
      `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":"${"x".repeat(random.below(3000))}"}}`,
    );
  if (kind === 2) return random.bytes(random.below(500));
  const depth = random.below(40);
  const params = "[".repeat(depth) + "]".repeat(depth);
  return asciiBytes(
    `{"jsonrpc":"2.0","id":${random.below(9)},"method":"echo","params":{"a":${params || 0}}}`,
  );
};

/** Throws for a chip that ends or no longer answers; returns how many messages it was sent. */
export const fuzzChip = async (
  chip: FuzzedChip,
  seed: number,
  seconds: number,
): Promise<number> => {
  const random = new Random(seed);
  await chip.alive();
  const end = performance.now() + seconds * 1000;
  let sent = 0;
  while (performance.now() < end) {
    for (let n = 0; n < BATCH; n++) {
      if (random.chance(30)) chip.seal(plaintext(random));
      else chip.say(message(random, [AGENT_ID]));
    }
    sent += BATCH;
    await chip.alive();
  }
  return sent;
};
