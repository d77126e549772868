/**
 * The first login on a relay that requires two factors: an authenticator gets its secret, and a
 * code confirms it.
 */

import { Failure, qrCodeFor } from "@blindrelay/protocol/command-line";
import { asking, type Questions, Unanswered } from "@blindrelay/protocol/prompt";
import type { LoginAnswer } from "@blindrelay/protocol/schema/rest";
import { renderUnicodeCompact } from "uqr";
import { printStatus } from "../base/output.ts";
import { Rest, RestFailure } from "../base/rest.ts";
import { showSecret } from "../base/show-secret.ts";

const TRIES = 3;

/** Asks for a code until `use` accepts one. */
const untilRight = async <Result>(
  person: Questions,
  question: string,
  use: (code: string) => Promise<Result>,
): Promise<Result> => {
  for (let left = TRIES - 1; ; left--) {
    const code = (await person.ask(question)).trim();
    try {
      return await use(code);
    } catch (error) {
      const isWrong = error instanceof RestFailure && error.code === "INVALID_CREDENTIALS";
      if (!isWrong || left === 0) throw error;
      printStatus(error.message);
    }
  }
};

/** The failure of a question that was not answered, with what has been done by then. */
const withState = (error: unknown, state: string): unknown =>
  error instanceof Unanswered ? new Failure(error.kind, `${error.why}; ${state}`, error) : error;

/**
 * Enrols on the terminal, then logs in with `logIn` and a code. `accessToken`: returned by the
 * login without a second factor. Rejects with a Failure.
 */
export const enrol = (
  url: string,
  accessToken: string,
  logIn: (code: string) => Promise<LoginAnswer>,
): Promise<LoginAnswer> =>
  asking("the first login enrols an authenticator, so do it on a terminal", async (person) => {
    let state = "nothing was done";
    try {
      const rest = new Rest(url, accessToken);
      const { secret, otpauth_uri } = await rest.ask(
        "TotpEnrollAnswer",
        "POST",
        "/auth/totp/enroll",
      );
      state = "you are not enrolled: remove the entry from your app, and log in again for another";
      showSecret(`This relay requires a second factor. Enter this in your authenticator app:
  ${secret}
  ${otpauth_uri}`);
      const { stderr, env } = process;
      const code = qrCodeFor(renderUnicodeCompact, otpauth_uri, stderr, env.TERM);
      if (code !== "") stderr.write(`${code}\n`);
      const codes = await untilRight(person, "The code it shows: ", async (totp_code) => {
        const answer = await rest.ask("TotpConfirmAnswer", "POST", "/auth/totp/confirm", {
          totp_code,
        });
        return answer.recovery_codes;
      });
      state =
        "you are enrolled, and not logged in: run blindrelay login with a code that your app shows";
      showSecret(`Recovery codes: each works once in place of a code. Keep them apart from the app:
  ${codes.join("\n  ")}`);
      return await untilRight(
        person,
        "The next code it shows (each code works only once): ",
        logIn,
      );
    } catch (error) {
      throw withState(error, state);
    }
  });
