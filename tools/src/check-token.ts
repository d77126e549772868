/** Credentials of the wrong kind or with a typing error are refused before anything is sent. */
import { tokenProblem } from "@blindrelay/protocol";
import { Failure } from "./failure.ts";

/** Throws a Failure (refused) that names what is wrong. `name`: of the place where it stands. */
export const checkToken = (
  token: string,
  kind: "account" | "agent" | "e2e",
  name: string,
): void => {
  const problem = tokenProblem(token, kind);
  if (problem !== null) throw new Failure("refused", `${name}: ${problem}`);
};
