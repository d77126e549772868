import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { outcomeOf } from "@blindrelay/client-sdk";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Journal } from "./journal.ts";

const ASKED = {
  url: "https://relay.example",
  account: "ada",
  method: "act",
  params_sha256: "0".repeat(64),
  where: "id~unit-*",
};
const AGENTS = ["a", "b", "c"];

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-journal-"));
  path = join(folder, "sub", "journal.jsonl");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const open = (asked = ASKED): Promise<Journal> => Journal.open(path, asked, async () => AGENTS);
const lines = (): unknown[] =>
  readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
const kinds = (journal: Journal): string[] =>
  journal.outcomes().map(({ agentId, outcome }) => `${agentId} ${outcome}`);

describe("a journal", () => {
  it("has a head, what was sent, and outcomes, and is for its owner alone", async () => {
    const journal = await open();
    await journal.sent("a");
    await journal.settled(outcomeOf("a", "ok", null, { n: 1 }));
    await journal.close();
    const at = expect.stringMatching(/^\d{4}-.*Z$/);
    expect(lines()).toEqual([
      { journal: 1, ...ASKED, agents: AGENTS },
      { agent_id: "a", state: "sent", at },
      { agent_id: "a", outcome: "ok", result: { n: 1 }, error: null, at },
    ]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  // openshift/oc#474: a home that cannot be written
  it("says how to name another one where it cannot be written", async () => {
    writeFileSync(join(folder, "file"), "");
    path = join(folder, "file", "journal.jsonl");
    await expect(open()).rejects.toThrow(/^cannot use the journal .*: --resume FILE$/);
  });

  it("says that what was sent and has no outcome is unknown", async () => {
    const first = await open();
    await Promise.all([first.sent("a"), first.sent("b")]);
    await first.settled(outcomeOf("b", "offline", "away"));
    await first.close();
    const again = await open();
    expect(kinds(again)).toEqual(["a unknown", "b offline"]);
    await again.close();
  });

  it.each([
    ['{"agent_id":"a","outcome":"ok","result":1', ["a unknown"]],
    ['{"agent_id":"a","outcome":"ok","result":1,"error":null,"at":"x"}\n', ["a ok"]],
  ])("counts a last line that was cut off as not written: %s", async (tail, kept) => {
    const first = await open();
    await first.sent("a");
    await first.close();
    appendFileSync(path, tail);
    const again = await open();
    await again.settled(outcomeOf("c", "ok", null));
    await again.close();
    const third = await open();
    expect(kinds(third)).toEqual([...kept, "c ok"]);
    await third.close();
  });

  it("whose head was cut off is made again, and none is left if nothing matches", async () => {
    await (await open()).close();
    const whole = readFileSync(path);
    writeFileSync(path, whole.subarray(0, 40));
    await (await open()).close();
    expect(readFileSync(path)).toEqual(whole);
    rmSync(path);
    const none = Journal.open(path, ASKED, () => Promise.reject(new Error("none")));
    await expect(none).rejects.toThrow("none");
    expect(statSync(path, { throwIfNoEntry: false })).toBeUndefined();
  });

  it.each(["-----BEGIN PRIVATE KEY-----", "{}\n", '{"journal":2,"agents":[]}\n'])(
    "is not made of a file that holds %j",
    async (text) => {
      await (await open()).close();
      writeFileSync(path, text);
      await expect(open()).rejects.toMatchObject({
        exitCode: 2,
        message: expect.stringContaining("is not one of this version"),
      });
      expect(readFileSync(path, "utf8")).toBe(text);
    },
  );

  it.each(["url", "account", "method", "params_sha256", "where"] as const)(
    "of another %s is refused",
    async (key) => {
      await (await open()).close();
      await expect(open({ ...ASKED, [key]: "other" })).rejects.toMatchObject({
        exitCode: 2,
        message: expect.stringContaining(`its ${key} is ${ASKED[key]}`),
      });
    },
  );

  it("is refused while another has it, and when it is damaged", async () => {
    const first = await open();
    await expect(open()).rejects.toMatchObject({ exitCode: 2 });
    await first.close();
    appendFileSync(path, 'nonsense\n{"agent_id":"a","state":"sent","at":"x"}\n');
    await expect(open()).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining("is damaged (line 2)"),
    });
  });
});
