/**
 * Whatever arrives before a link begins, plain or in TLS, ends its own connection only: on the Node
 * of the image, and on the oldest one that the relay promises to run on.
 */
import { noOpenssl } from "@blindrelay/relay-server/testing";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { oldestNode } from "../../publish/packages.ts";
import { UPGRADE } from "../raw-socket.ts";
import { type RelayProcess, startRelayProcess } from "../relay-process.ts";
import { addressFor, type Conversation, converse, holdsWithin, metric } from "./conversation.ts";
import { FRAMINGS, ODD, REFUSED } from "./odd.ts";

const AT_ONCE = 250;
/** Refused connections are cut after 3 s; two cores may be busy. */
const GONE_MS = 20_000;
/** Some get no answer: the relay waits for the rest of them. */
const ANSWER_MS = 1000;

const NODES = { "this Node": process.execPath, "the oldest Node": oldestNode() };
const WAYS = Object.entries(NODES).flatMap(([name, node]) => [
  { name: `${name}, plain`, node, tls: false },
  ...(noOpenssl ? [] : [{ name: `${name}, TLS`, node, tls: true }]),
]);

describe.each(WAYS)("on $name", ({ node, tls }) => {
  let relay: RelayProcess;
  beforeAll(async () => {
    relay = await startRelayProcess(["--anonymous-requests-per-minute", "1000000"], { node, tls });
  });
  afterAll(() => relay.stop());

  const say = (bytes: string | Buffer, i: number): Conversation =>
    converse({ port: relay.port, tls, localAddress: addressFor(i) }, bytes);

  /** It runs, has contained no fault, logged none, and answers. */
  const expectWell = async (): Promise<void> => {
    expect(relay.log.filter((line) => !line.includes('"level":40'))).toEqual([]);
    expect(await metric(relay, "faults_total")).toBe(0);
    const health = await relay.api("GET", "/auth/config");
    expect([relay.isAlive(), health.status]).toEqual([true, 200]);
  };

  /** All but the one that this process keeps for its own requests. */
  const expectGone = async (): Promise<void> => {
    const isGone = async () => (await metric(relay, "pending_connections")) <= 1;
    expect(await holdsWithin(GONE_MS, isGone)).toBe(true);
  };

  test(`${ODD.length} odd upgrades, heads and bodies`, async () => {
    for (let from = 0; from < ODD.length; from += AT_ONCE) {
      const some = ODD.slice(from, from + AT_ONCE);
      const talks = some.map((odd, i) => ({ ...odd, talk: say(odd.bytes, from + i) }));
      await holdsWithin(ANSWER_MS, () => talks.every(({ talk }) => talk.answer() !== ""));
      for (const { bytes, answer, talk } of talks) {
        await holdsWithin(GONE_MS, () => answer.test(talk.answer()));
        expect(talk.answer(), JSON.stringify(bytes.slice(0, 400))).toMatch(answer);
      }
      // What was refused is cut by the relay, though this side stays open.
      for (const { answer, talk } of talks) if (answer !== REFUSED) talk.end();
      await expectGone();
      for (const { talk } of talks) talk.end();
    }
    await expectWell();
  });

  test("random ones, and pieces of them", async () => {
    const line = fc.oneof(
      fc.constantFrom(...FRAMINGS, "Expect: 100-continue", "Connection: close", "Upgrade: h2c"),
      fc.string({ unit: "binary", maxLength: 40 }),
    );
    const head = fc
      .tuple(fc.constantFrom("GET", "POST", "CONNECT", "X"), fc.array(line, { maxLength: 4 }))
      .map(([method, more]) => `${UPGRADE.replace("GET", method)}${more.join("\r\n")}\r\n\r\n`);
    const bytes = fc
      .tuple(head, fc.nat(400), fc.uint8Array({ maxLength: 40 }))
      .map(([text, at, noise]) =>
        Buffer.concat([
          Buffer.from(text, "latin1").subarray(0, 200 + at),
          noise,
          Buffer.from(text, "latin1").subarray(200 + at),
        ]),
      );
    let count = 0;
    const many = fc.array(bytes, { minLength: 20, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(many, async (some) => {
        const talks = some.map((each) => say(each, count++));
        await holdsWithin(300, () => talks.every((talk) => talk.answer() !== ""));
        for (const talk of talks) {
          expect(talk.answer()).not.toMatch(/HTTP\/1\.1 5\d\d /);
          talk.end();
        }
      }),
      { numRuns: 10 },
    );
    await expectGone();
    await expectWell();
  });
});
