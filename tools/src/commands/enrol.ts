/**
 * The first login on a relay that requires two factors: an authenticator gets its secret, and a
 * code confirms it.
 */
import { printStatus } from "../output.ts";
import { questions } from "../prompt.ts";
import { Rest, RestFailure } from "../rest.ts";
import { showSecret } from "../show-secret.ts";

const TRIES = 3;

const confirm = async (rest: Rest, ask: () => Promise<string>): Promise<readonly string[]> => {
  for (let left = TRIES - 1; ; left--) {
    const body = { totp_code: (await ask()).trim() };
    try {
      const answer = await rest.ask("TotpConfirmAnswer", "POST", "/auth/totp/confirm", body);
      return answer.recovery_codes;
    } catch (error) {
      const isWrong = error instanceof RestFailure && error.code === "INVALID_CREDENTIALS";
      if (!isWrong || left === 0) throw error;
      printStatus(error.message);
    }
  }
};

/**
 * Enrols on the terminal; resolves to a code that is valid for the login itself. `accessToken`:
 * returned by the login without a second factor. Rejects with a Failure.
 */
export const enrol = async (url: string, accessToken: string): Promise<string> => {
  const person = questions("the first login enrols an authenticator, so do it on a terminal");
  try {
    const rest = new Rest(url, accessToken);
    const { secret, otpauth_uri } = await rest.ask("TotpEnrollAnswer", "POST", "/auth/totp/enroll");
    showSecret(`This relay requires a second factor. Enter this in your authenticator app:
  ${secret}
  ${otpauth_uri}`);
    const codes = await confirm(rest, () => person.ask("The code it shows: "));
    showSecret(`Recovery codes: each works once in place of a code. Keep them apart from the app:
  ${codes.join("\n  ")}`);
    return (await person.ask("The next code it shows (each code works only once): ")).trim();
  } finally {
    person.close();
  }
};
