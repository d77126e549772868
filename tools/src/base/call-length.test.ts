import { type Agent, CallError } from "@blindrelay/client-sdk";
import { expect, it } from "vitest";
import { checkCallLength } from "./call-length.ts";

const OPTIONS = { timeoutMs: 30_000.5 };

/** The outcome, and the calls that the agent received. */
const check = async (characters: number, info: unknown) => {
  const asked: string[] = [];
  const agent = {
    call: async (method: string) => {
      asked.push(method);
      if (info instanceof Error) throw info;
      return info;
    },
  } as unknown as Agent;
  const call = checkCallLength(agent, "echo", { x: "x".repeat(characters) }, OPTIONS);
  const came = await call.then(
    () => "sent",
    ({ remote, message }: CallError) => remote?.message ?? message,
  );
  return [came, asked];
};
const BOARD = { max_plaintext: 384 };

it("asks nothing for a call that every agent accepts", async () => {
  expect(await check(300, BOARD)).toEqual(["sent", []]);
});

it("refuses what exceeds the agent's reported limit", async () => {
  const refused = "the call has 2074 bytes, at most 384 fit";
  expect(await check(2000, BOARD)).toEqual([refused, ["system.info"]]);
  expect(await check(2000, { max_plaintext: 47_000 })).toEqual(["sent", ["system.info"]]);
});

it("sends the call if the agent reports no limit", async () => {
  const remote = { code: -32000, message: "the result has 402 bytes, at most 384 fit" };
  const tooLong = new CallError("REMOTE", "refused", { remote });
  for (const info of [tooLong, {}, null]) expect((await check(2000, info))[0]).toBe("sent");
});

it("fails like the call itself if the agent is offline", async () => {
  const away = new CallError("AGENT_OFFLINE", "no connection");
  expect((await check(2000, away))[0]).toBe("no connection");
});
