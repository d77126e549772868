/** Refuses credentials of the wrong kind or with a typing error before anything is sent. */
import { accountTokenProblem, tokenProblem } from "@blindrelay/protocol";
import { Failure } from "@blindrelay/protocol/command-line";

/** Throws a Failure (refused) with the reason. `name`: the setting that contains the token. */
export const checkToken = (
  token: string,
  kind: "account" | "agent" | "e2e" | "push",
  name: string,
): void => {
  const problem = kind === "account" ? accountTokenProblem(token) : tokenProblem(token, kind);
  if (problem !== null) throw new Failure("refused", `${name}: ${problem}`);
};
