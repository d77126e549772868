/**
 * What one opening and one call cost an agent on the chip: on a virtual clock and with clients that
 * draw the same each time, so that nothing but the code decides.
 */
import { ManualTimer, seededRandom } from "@blindrelay/agent-sdk/memory";
import { type ChipFigures, figuresOf } from "@blindrelay/agent-sdk/testing/chip/chip";
import { ChipWorker } from "@blindrelay/agent-sdk/testing/chip/worker";
import { makeToken } from "@blindrelay/protocol";
import { asciiBytes } from "@blindrelay/protocol/crypto";
import {
  type ClientEffect,
  ClientSession,
  DEFAULT_CLIENT_TIMINGS,
} from "@blindrelay/protocol/session";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { FakeRelay } from "@blindrelay/protocol/testing/fake-relay";
import { budgets, near } from "./budgets.ts";
import { CHIP_LIMITS, type ChipFolder, chip } from "./house.ts";

const AGENT_ID = "chip";
const AGENT_TOKEN = makeToken("e2e", new Uint8Array(32).fill(7));
const RELAY_TOKEN = makeToken("agent", new Uint8Array(32));
const CALL = asciiBytes('{"jsonrpc":"2.0","id":7,"method":"now","params":{"marker":1}}');
/** Slower than the pace at which openings are answered. */
const APART_MS = 1000;
/** Less than a slot. */
const KEPT_BYTES = 16;

export class CountedChip {
  private readonly worker: ChipWorker;
  private readonly timer = new ManualTimer();
  private readonly sessions: ClientSession[] = [];
  private readonly toChip: [kind: string, body: string][] = [];
  private readonly relay = new FakeRelay({
    packet: (_link, { text }) => {
      for (const session of this.sessions) this.carry(session.receive(text, this.timer.now()));
    },
  });
  private answers = 0;
  private figuresSaid = "[]";

  /** `image`: of "attacked". */
  constructor(folder: ChipFolder, image: string) {
    const links = new Map<string, ReturnType<FakeRelay["attach"]>>();
    this.worker = new ChipWorker({
      ...{ chip, image, flash: folder.path(`counted-${Math.random()}`), counting: true },
      heard: (kind, body) => {
        const space = body.indexOf(" ");
        if (kind === "figures") this.figuresSaid = body;
        else if (kind === "connect") {
          const send = (text: string): void => {
            this.toChip.push(["received", `${body} ${text}`]);
          };
          links.set(body, this.relay.attach({ send, close: () => undefined }));
          this.toChip.push(["opened", body]);
        } else if (kind === "send") links.get(body.slice(0, space))?.receive(body.slice(space + 1));
      },
    });
    this.run("provision", AGENT_TOKEN);
    const identity = { agentId: AGENT_ID, relayToken: RELAY_TOKEN, agentToken: AGENT_TOKEN };
    this.run("start", JSON.stringify({ ...CHIP_LIMITS, ...identity }));
  }

  /** Another client, whose session is open on return. */
  open(): void {
    this.timer.advance(APART_MS);
    const session = new ClientSession({
      suite: nodeSuite(),
      random: seededRandom(this.sessions.length + 1),
      agentId: AGENT_ID,
      agentToken: AGENT_TOKEN,
      version: "1",
      timings: DEFAULT_CLIENT_TIMINGS,
    });
    this.sessions.push(session);
    this.carry(session.open(this.timer.now()));
    this.pump();
    if (session.state !== "open") throw new Error(`the session is ${session.state}`);
  }

  /** Throws for a call without an answer. */
  call(client: number): void {
    const before = this.answers;
    const text = this.sessions[client]?.seal(CALL) ?? "";
    this.carry([{ kind: "send", text }]);
    this.pump();
    if (this.answers === before) throw new Error("the call has no answer");
  }

  figures(): ChipFigures {
    this.run("figures");
    return figuresOf(JSON.parse(this.figuresSaid) as number[]);
  }

  end(): Promise<void> {
    return this.worker.end();
  }

  private carry(effects: readonly ClientEffect[]): void {
    for (const effect of effects) {
      if (effect.kind === "send") this.relay.links.at(-1)?.say(effect.text);
      else if (effect.kind === "message") this.answers++;
    }
  }

  private run(kind: string, body = ""): void {
    this.worker.command(kind, this.timer.now(), body);
    this.pump();
  }

  private pump(): void {
    for (let next = this.toChip.shift(); next !== undefined; next = this.toChip.shift())
      this.worker.command(next[0], this.timer.now(), next[1]);
  }
}

export interface Costs {
  /** Instructions. */
  readonly perOpening: number;
  readonly perCall: number;
  /** Bytes that stay in use for each call. */
  readonly kept: number;
  /** With one client, after its opening and calls; with all. */
  readonly one: ChipFigures;
  readonly all: ChipFigures;
}

/** Of so many clients, and as many calls by the first, then as many by all. */
export const costsOf = async (chip: CountedChip, clients: number): Promise<Costs> => {
  try {
    chip.open();
    chip.call(0);
    const opened = chip.figures();
    for (let n = 0; n < clients; n++) chip.call(0);
    const one = chip.figures();
    for (let n = 1; n < clients; n++) chip.open();
    const many = chip.figures();
    for (let n = 0; n < clients; n++) chip.call(n);
    const all = chip.figures();
    const spent = (from: ChipFigures, to: ChipFigures): number =>
      to.instructions - from.instructions;
    return {
      perOpening: Math.round(spent(one, many) / (clients - 1)),
      perCall: Math.round((spent(opened, one) + spent(many, all)) / (2 * clients)),
      kept: (one.live - opened.live) / clients,
      one,
      all,
    };
  } finally {
    await chip.end();
  }
};

/** What is over its budget, or not within its share; instructions only if they are comparable. */
export const overBudget = (costs: Costs): string[] => {
  const { one, all } = costs;
  const comparable = chip.tools === budgets.tools;
  const within = (name: "perCall" | "perOpening"): boolean =>
    !comparable || near(budgets[name], 0.02)(costs[name]);
  const passed: { readonly [name: string]: boolean } = {
    perCall: within("perCall"),
    perOpening: within("perOpening"),
    kept: costs.kept < KEPT_BYTES,
    heapOneClient: one.heap <= budgets.heapOneClient,
    heapManyClients: all.heap <= budgets.heapManyClients,
    cStack: all.cStack <= budgets.cStack,
    jsStack: all.jsStack <= budgets.jsStack,
    aliases: all.aliases === 0,
  };
  return Object.keys(passed).filter((name) => !passed[name]);
};
