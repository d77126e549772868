/** A password typed at a terminal is prompted for; a pipe gets no prompt. */
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { readPassword } from "./password.ts";

test.each([
  [true, "Type the password (it is shown), then Enter and Ctrl-D.\n"],
  [undefined, ""],
])("terminal: %j", async (isTTY, told) => {
  const stdin = Object.assign(new PassThrough(), isTTY === undefined ? {} : { isTTY });
  const stderr = new PassThrough();
  const reading = readPassword(true, { stdin, stderr });
  stderr.end();
  expect(await text(stderr)).toBe(told);
  stdin.end("correct horse\r\n");
  expect(await reading).toBe("correct horse");
});

test("without the flag nothing is read", async () => {
  await expect(readPassword(undefined)).rejects.toMatchObject({ exitCode: 2 });
});
