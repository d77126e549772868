/**
 * Secrets in variables as people and other programs put them there.
 *
 * cli/cli#9731, balena-io/balena-cli#1800
 */
import { makeToken } from "@blindrelay/protocol";
import { expect, it } from "vitest";
import { Settings } from "./settings.ts";

const TOKEN = makeToken("account", new Uint8Array(32).fill(7));

it.each([
  ["a line end of the file it came from", `${TOKEN}\n`],
  ["a line end of Windows, and a space before it", ` ${TOKEN}\r\n`],
  ["quotation marks that docker --env-file leaves", `"${TOKEN}"`],
  ["single ones, with a line end inside", `'${TOKEN}\n'`],
])("a token is read with %s", (_, given) => {
  const env = { BLINDRELAY_URL: ' "https://relay.example"\n', BLINDRELAY_ACCOUNT_TOKEN: given };
  const settings = new Settings(env, "default");
  expect(settings.accountToken()).toBe(TOKEN);
  expect(settings.httpUrl()).toContain("https://relay.example");
});
