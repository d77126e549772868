/**
 * One device program file runs unchanged on every runtime, behind a real relay, and a real client
 * cannot tell them apart except by system.info.
 */
import type { Version } from "@blindrelay/protocol/crypto";
import { KINDS } from "@blindrelay/simulator/devices/kinds";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openRelayFixture, type RelayFixture } from "../xs/relay-fixture.ts";
import type { Runtime } from "./board.ts";
import { CHECKS, INFO_FIELDS } from "./checks.ts";
import type { ProgramName } from "./programs.ts";

/** Includes building a script for XS, and filling a flash. */
const HOOK_MS = 300_000;
const LATEST = "2";
/** Of any characters of Unicode. */
const TEXTS = 56;
const KEPT_NAMES = 20;

/** A new board that runs the program, and the client's handle for its agent. */
const begin = async (
  fixture: RelayFixture,
  runtime: Runtime,
  version: Version,
  program: ProgramName,
) => {
  const board = await runtime.make();
  const credentials = await fixture.addAgent("board");
  await board.install({ credentials, version, program });
  await board.provision();
  await board.powerOn();
  const { agentId, agentToken } = credentials;
  return { board, agent: fixture.client.agent(agentId, agentToken, { version }), credentials };
};
type Begun = Awaited<ReturnType<typeof begin>>;

/** The tests of one runtime. */
export const parityTests = (runtime: Runtime): void => {
  const there = runtime.isThere;
  let fixture: RelayFixture;
  beforeAll(async () => {
    fixture = await openRelayFixture();
  });
  afterAll(() => fixture.end());

  // The table's program has more methods than the smallest board has memory for.
  describe.skipIf(!there || runtime.tight).each(runtime.versions)(
    "with suite %s, to a client",
    (version) => {
      let begun: Begun;
      beforeAll(async () => {
        begun = await begin(fixture, runtime, version, "edgeCases");
      }, HOOK_MS);
      afterAll(() => begun.board.end());

      it.each(CHECKS)("looks like any other: $what", async ({ see, expected, onEspruino }) => {
        const seen = await see(begun.agent, runtime.maxPlaintext);
        const wanted = runtime.isEspruino
          ? (onEspruino ?? expected(runtime.maxPlaintext))
          : expected(runtime.maxPlaintext);
        expect(seen).toEqual(wanted);
      });

      it("says in system.info what it is", async () => {
        const info = await begun.agent.call<Record<string, unknown>>("system.info");
        expect(Object.keys(info)).toEqual(INFO_FIELDS);
        expect(info).toMatchObject({
          name: "board",
          runtime: expect.stringMatching(runtime.runtime),
          max_plaintext: runtime.maxPlaintext,
        });
        expect(info.methods).toContain("promise.rejected.nothing");
      });
    },
  );

  describe.skipIf(!there)("with the simulator's programs", () => {
    // Echo's params contain more than ASCII, which a board reads with our own parser.
    const kinds = KINDS.filter(({ name }) => name !== "echo" || !runtime.tight);
    it.each(kinds)("answers correctly as a $name", async ({ name, interview }) => {
      const { board, agent } = await begin(fixture, runtime, LATEST, name as ProgramName);
      const questions = interview("board");
      for (let i = 0; i < 12; i++) {
        const { method, params, right } = questions.ask();
        const answer = await agent.call(method, params);
        expect(
          right(answer),
          `${method} ${JSON.stringify(params)}: ${JSON.stringify(answer)}`,
        ).toBe(true);
      }
      await board.end();
    });

    it("refuses calls that its program refuses", async () => {
      const { board, agent } = await begin(fixture, runtime, LATEST, "valve");
      for (const params of [{ percent: 101 }, { percent: "40" }, {}, [], undefined]) {
        await expect(agent.call("valve.open", params)).rejects.toMatchObject({
          remote: { code: -32000, message: "percent must be a number from 0 to 100" },
        });
      }
      expect(await agent.call("valve.state")).toEqual({ percent: 0, moves: 0 });
      await board.end();
    });
  });

  describe.skipIf(!there)("in its life", () => {
    it("answers one call after another: results, promises, errors, and system.info", async () => {
      const { board, agent } = await begin(fixture, runtime, LATEST, "counter");
      const params = { text: "x".repeat(200), n: [1, -2, true, null] };
      for (let times = 1; times <= 10; times++) {
        expect(await agent.call("do", params)).toEqual({ times, with: params });
        expect(await agent.call("later")).toEqual({ late: true });
        await expect(agent.call("fail")).rejects.toMatchObject({
          remote: { code: -32000, message: "no" },
        });
        await expect(agent.call("nothing")).rejects.toMatchObject({ remote: { code: -32601 } });
      }
      expect(await agent.call("system.info")).toMatchObject({
        name: "board",
        runtime: expect.stringMatching(runtime.runtime),
        max_plaintext: runtime.maxPlaintext,
      });
      await board.end();
    });

    it("returns every text as it came, and every name of a member", async () => {
      const { board, agent } = await begin(fixture, runtime, LATEST, "counter");
      const texts = fc.sample(fc.string({ unit: "binary", minLength: 1, maxLength: 8 }), TEXTS);
      // An engine that keeps every name takes only so many.
      const names = runtime.maxNesting === undefined ? TEXTS : KEPT_NAMES;
      for (const [i, text] of texts.entries()) {
        // Not alone: `__proto__` is no name of a member.
        const name = i < names ? `š${text}` : "š";
        const params = { [name]: i, a: [text] };
        const answer = await agent.call<{ with: unknown }>("do", params);
        expect(answer.with, JSON.stringify(text)).toEqual(params);
      }
      await board.end();
    });

    it("serves two people at once, and sends events to both", async () => {
      const { board, agent, credentials } = await begin(fixture, runtime, LATEST, "counter");
      const second = await fixture.connect();
      const heard: unknown[] = [];
      const other = second.agent(credentials.agentId, credentials.agentToken, { version: LATEST });
      other.on("event", (event, data) => heard.push([event, data]));
      expect(await other.call("done")).toEqual({ times: 0 });
      const params = { x: "y".repeat(200) };
      expect(await agent.call("do", params)).toEqual({ times: 1, with: params });
      expect(await other.call("do", params)).toEqual({ times: 2, with: params });
      expect(heard).toEqual([
        ["done", { times: 1 }],
        ["done", { times: 2 }],
      ]);
      second.close();
      await board.end();
    });

    it.skipIf(runtime.maxNesting === undefined)(
      "refuses a call that is nested too deep for its stack, and answers the next",
      async () => {
        const { board, agent } = await begin(fixture, runtime, LATEST, "counter");
        const nested = (levels: number): unknown =>
          JSON.parse("[".repeat(levels) + "]".repeat(levels));
        // One level is the request itself.
        const most = (runtime.maxNesting as number) - 1;
        await expect(agent.call("do", nested(most + 1))).rejects.toMatchObject({
          remote: { code: -32000, message: expect.stringContaining("levels deep, at most") },
        });
        await expect(agent.call("do", nested(4000))).rejects.toMatchObject({
          remote: { code: -32000 },
        });
        expect(await agent.call("do", nested(most))).toEqual({ times: 1, with: nested(most) });
        await board.end();
      },
    );

    // Only small devices bound a message far below what a client may send.
    it.skipIf(runtime.maxMessage === null)(
      "ends the link at a message over its limit, and reconnects",
      async () => {
        const { board, agent } = await begin(fixture, runtime, LATEST, "counter");
        const x = "y".repeat(runtime.maxMessage as number);
        const tooLong = agent.call("do", { x }, { timeoutMs: 2000 });
        await expect(tooLong).rejects.toMatchObject({ name: "CallError" });
        const patient = { idempotent: true, timeoutMs: 30_000 };
        expect(await agent.call("done", {}, patient)).toEqual({ times: 0 });
        await board.end();
      },
    );

    it("reconnects after a power cut, and refuses to start without a boot count", async () => {
      const { board, agent } = await begin(fixture, runtime, LATEST, "counter");
      expect(await agent.call("do")).toMatchObject({ times: 1 });
      await board.powerOff();
      await board.powerOn();
      const patient = { idempotent: true, timeoutMs: 30_000 };
      expect(await agent.call("done", {}, patient)).toEqual({ times: 0 });
      await board.powerOff();
      await expect(board.provision()).rejects.toThrow("never used here");
      await board.spoil();
      await expect(board.powerOn()).rejects.toThrow("boot count is not readable");
      await board.end();
    });
  });
};
