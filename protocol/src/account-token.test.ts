import { expect, it } from "vitest";
import { accountTokenProblem } from "./account-token.ts";
import { makeToken } from "./tokens.ts";

const tokenOf = (kind: Parameters<typeof makeToken>[0]) => makeToken(kind, new Uint8Array(32));

it("a program of an account may show its token or an access key, and nothing else", () => {
  expect(accountTokenProblem(tokenOf("account"))).toBe(null);
  expect(accountTokenProblem(tokenOf("key"))).toBe(null);
  expect(accountTokenProblem(tokenOf("agent"))).toBe(
    "expected an account token (acct_), got an agent relay token (agt_)",
  );
  expect(accountTokenProblem(`${tokenOf("key").slice(0, -1)}?`)).toMatch(/checksum of this key_/);
});
