/**
 * Power cuts during a push, and invalid pushes, on a real Espruino whose Storage holds the SDK, a
 * program twice and the records, and is compacted in between.
 */
import { createHash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { bootCode } from "@blindrelay/agent-sdk/testing/build/boot";
import { buildEspruino, buildEspruinoWifi } from "@blindrelay/agent-sdk/testing/build/espruino";
import type { Agent, CallError } from "@blindrelay/client-sdk/node";
import { makeToken } from "@blindrelay/protocol";
import { pushProof } from "@blindrelay/protocol/crypto";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openRelayFixture, type RelayFixture } from "../xs/relay-fixture.ts";
import { binary, ENGINES, EngineBoard, whySkipped } from "./engine.ts";

/** To run more: PUSH_CUTS=200 npx vitest run test/src/espruino/push-cuts.test.ts */
const CUTS = Number(process.env.PUSH_CUTS ?? 4);
const BOARDS = Math.min(4, CUTS);
/** What Storage has beside the SDK: it is compacted during about every second push. */
const STORAGE_BYTES = 11_264;
const FILLER = `// ${"0123456789abcdef".repeat(200)}\n`;
const PART = 192;
/** Of every second board. */
const KEY = makeToken("push", new Uint8Array(32).fill(5));
const CALL_MS = 20_000;
const BACK_MS = 120_000;

const textOf = (n: number): string =>
  `module.exports=(agent)=>{agent.handle("which",()=>({n:${n}}));};\n${FILLER}`;
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const idOf = (text: string): string => sha256(text).slice(0, 16);
const below = (max: number): number => Math.floor(Math.random() * max);

interface Status {
  readonly id: string;
  readonly serial: number;
  readonly trial: string | null;
}

/** What a board may be doing when its power is cut. */
type Progress = "sending" | "starting" | "confirming" | "kept";

class PushedBoard {
  private readonly board: EngineBoard;
  private readonly agent: Agent;
  private readonly agentId: string;
  private readonly key: string | null;
  private readonly isRoomy: boolean;
  /** The highest that it was known to have taken. */
  private serial = 0;
  /** The running program, and the one to return to. */
  good = 0;
  compactions = 0;

  private constructor(
    board: EngineBoard,
    agent: Agent,
    agentId: string,
    key: string | null,
    isRoomy: boolean,
  ) {
    this.board = board;
    this.agent = agent;
    this.agentId = agentId;
    this.key = key;
    this.isRoomy = isRoomy;
  }

  static async make(
    path: string,
    sdk: string,
    fixture: RelayFixture,
    name: string,
    key: string | null,
  ): Promise<PushedBoard> {
    const { url, agentId, relayToken, agentToken } = await fixture.addAgent(name);
    const board = new EngineBoard(path);
    const config = {
      ...{ url: `${url.replace("http", "ws")}/wss`, agent_id: agentId, v: "2" },
      ...{ relay_token: relayToken, agent_token: agentToken },
      ...(key === null ? {} : { push_key: key }),
    };
    await board.install("blindrelay", sdk);
    await board.install("blindrelay.json", JSON.stringify(config));
    await board.install("program", textOf(0));
    await board.install(".bootcde", bootCode("1.0.0", true));
    await board.engine.ask(
      `var s=require("Storage"),f=s.getFree(),used=s.getStats().totalBytes-f-${sdk.length};
       s.write("filler","x",0,f-(${STORAGE_BYTES}-used));tell(1);`,
    );
    await board.provision();
    const made = new PushedBoard(
      board,
      fixture.client.agent(agentId, agentToken, { version: "2" }),
      agentId,
      key,
      path === binary,
    );
    await made.restart();
    expect(await made.which()).toBe(0);
    return made;
  }

  async restart(): Promise<void> {
    this.compactions += (this.board.life?.output ?? "").split("Compacting").length - 1;
    await this.board.powerOff();
    this.board.life = this.board.engine.start("load();");
  }

  end(): Promise<void> {
    return this.board.end();
  }

  push(params?: object): Promise<unknown> {
    return this.agent.call("system.push", params, { timeoutMs: CALL_MS, idempotent: true });
  }

  /** After it has restarted. */
  private async back<T>(method: string): Promise<T> {
    const end = performance.now() + BACK_MS;
    for (;;) {
      try {
        return (await this.agent.call(method, undefined, {
          timeoutMs: CALL_MS,
          idempotent: true,
        })) as T;
      } catch (error) {
        if (performance.now() > end) throw error;
        await wait(100);
      }
    }
  }

  async which(): Promise<number> {
    return (await this.back<{ n: number }>("which")).n;
  }

  status(): Promise<Status> {
    return this.back("system.push");
  }

  /** With the next serial; one that was used is taken no more. */
  private async prove({ size, sha256 }: { size: number; sha256: string }): Promise<object> {
    const { key, agentId } = this;
    if (key === null) return {};
    const { serial: last } = await this.status();
    expect(last).toBeGreaterThanOrEqual(this.serial);
    this.serial = last;
    const proof = (serial: number) => ({
      serial,
      proof: pushProof(nodeSuite(), key, agentId, serial, size, sha256),
    });
    // With 2,630 variables a refusal may find no memory.
    if (last > 0 && this.isRoomy) {
      const used = this.push({ size, sha256, version: "", seconds: 60, ...proof(last) });
      await expect(used).rejects.toThrow(`must be above ${last}`);
    }
    return proof(last + 1);
  }

  /** Pushes until the power is cut at a random point; returns how far the push came. */
  private async pushUntilCut(n: number): Promise<Progress> {
    const text = textOf(n);
    const head = { size: text.length, sha256: sha256(text), version: `1.0.${n}`, seconds: 60 };
    const calls: object[] = [{ ...head, ...(await this.prove(head)) }];
    for (let at = 0; at < text.length; at += PART) {
      const data = Buffer.from(text.slice(at, at + PART), "latin1").toString("base64url");
      calls.push({ at, data });
    }
    calls.push({ start: true });
    // A third each in the transfer, in the restart, at the confirmation.
    const phase = below(3);
    const last = phase === 0 ? below(calls.length) : calls.length - 1;
    for (const call of calls.slice(0, last)) {
      await this.push(call);
      if (call === calls[0] && this.key !== null) this.serial++;
    }
    const answer = this.push(calls[last]).catch(() => undefined);
    if (phase < 2) {
      if (phase === 1) await answer;
      await wait(phase === 0 ? below(40) : below(2000));
      return last === calls.length - 1 ? "starting" : "sending";
    }
    await answer;
    while ((await this.status()).trial !== idOf(text)) await wait(50);
    let kept = false;
    void this.push({ confirm: idOf(text) }).then(
      () => (kept = true),
      () => undefined,
    );
    await wait(below(80));
    return kept ? "kept" : "confirming";
  }

  /** One push, one power cut; afterwards the board works. */
  async cut(n: number): Promise<void> {
    const progress = await this.pushUntilCut(n);
    await this.restart();
    const now = await this.which();
    expect(
      progress === "kept" ? [n] : progress === "sending" ? [this.good] : [this.good, n],
    ).toContain(now);
    const { id, trial } = await this.status();
    if (trial !== null) {
      // The power was cut before the trial began.
      expect([progress, trial, now]).toEqual(["starting", idOf(textOf(n)), n]);
      await this.push({ confirm: trial });
    } else expect([idOf(textOf(now)), ""]).toContain(id);
    this.good = now;
  }
}

describe.each(ENGINES)("$name", ({ path, variable }) => {
  describe.skipIf(path === null)(
    `boards that are pushed to${whySkipped(path, variable)}`,
    { timeout: 3_000_000 },
    () => {
      let fixture: RelayFixture;
      let boards: PushedBoard[] = [];

      beforeAll(async () => {
        fixture = await openRelayFixture();
        // Where there is room the longest file: it could also join a Wi-Fi.
        const build = path === binary ? buildEspruinoWifi : buildEspruino;
        const sdk = build("2", true).stored;
        const names = Array.from({ length: BOARDS }, (_, i) => `board-${i}`);
        boards = await Promise.all(
          names.map((name, i) =>
            PushedBoard.make(path as string, sdk, fixture, name, i % 2 === 0 ? null : KEY),
          ),
        );
      }, 300_000);
      afterAll(async () => {
        for (const board of boards) await board.end();
        await fixture.end();
      });

      it("work after every power cut in a push, and accept another", async () => {
        const started = performance.now();
        let cuts = 0;
        const torment = async (board: PushedBoard): Promise<void> => {
          while (cuts < CUTS) await board.cut(++cuts);
          await board.restart();
          expect(await board.which()).toBe(board.good);
        };
        await Promise.all(boards.map(torment));
        const compactions = boards.reduce((sum, board) => sum + board.compactions, 0);
        const seconds = Math.round((performance.now() - started) / 1000);
        process.stderr.write(`${cuts} cuts, ${compactions} compactions, ${seconds} s\n`);
        if (CUTS >= 100) expect(compactions).toBeGreaterThan(0);
      });

      it("refuse invalid pushes of any kind, and continue", async () => {
        const board = boards[0] as PushedBoard;
        const { id } = await board.status();
        const refused = (params: object) =>
          board.push(params).then(
            () => "taken",
            (error: CallError) => error.remote?.message ?? error.code,
          );
        const head = { size: 100, sha256: "0".repeat(64), version: "1", seconds: 60 };
        const part = (length: number): string => Buffer.alloc(length).toString("base64url");
        for (const [params, reason] of [
          [{ at: 0, data: part(24) }, "not the next part"],
          [{ start: true }, "not whole"],
          [{ ...head, size: 10_000_000 }, "no room"],
          [{ ...head, sha256: "0" }, "not a push"],
          [{ ...head, seconds: 1e9 }, "not a push"],
          [{ confirm: "0".repeat(16) }, "not on trial"],
          [head, "taken"],
          [{ at: 24, data: part(24) }, "not the next part"],
          [{ at: -24, data: part(24) }, "not the next part"],
          [{ at: 0, data: "!" }, "not a part"],
          [{ at: 0, data: part(101) }, "not the next part"],
          [{ at: 0, data: part(450) }, /not the next part|at most 384 fit/],
          [{ at: 0, data: part(24) }, "taken"],
          [{ at: 0, data: part(24) }, "taken"],
          [{ at: 0.5, data: part(24) }, "not the next part"],
          [{ start: true }, "not whole"],
          [{ at: 24, data: part(76) }, "taken"],
          [{ start: true }, "not stored as sent"],
          [{ start: true }, "not whole"],
        ] as const) {
          expect(await refused(params)).toMatch(reason);
        }
        expect([(await board.status()).id, await board.which()]).toEqual([id, board.good]);
      });
    },
  );
});
