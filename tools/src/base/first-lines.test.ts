import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { firstLines, readInput } from "./first-lines.ts";

const piped = (...chunks: (string | Buffer)[]): PassThrough => {
  const input = new PassThrough();
  for (const chunk of chunks) input.write(chunk);
  return input;
};

it("waits for no more than the requested lines", async () => {
  expect(await firstLines(piped("a long", " password\r", "\nmore"), 1)).toEqual([
    "a long password",
  ]);
  const open = piped("\n");
  expect(await firstLines(open, 1)).toEqual([""]);
  expect(open.destroyed).toBe(true);
  expect(await firstLines(piped("password\n123456\nmore"), 2)).toEqual(["password", "123456"]);
});

it("returns what there is if the input ends", async () => {
  expect(await firstLines(piped("password").end(), 2)).toEqual(["password"]);
  expect(await firstLines(piped().end(), 1)).toEqual([]);
});

it("passes over a byte order mark, and refuses what is not UTF-8", async () => {
  const [half, rest] = [Buffer.from("ü").subarray(0, 1), Buffer.from("ü").subarray(1)];
  expect(await firstLines(piped("\ufeffpassword\n"), 1)).toEqual(["password"]);
  expect(await firstLines(piped(Buffer.concat([Buffer.from("a\nb"), half])), 1)).toEqual(["a"]);
  expect(await readInput(piped("\ufeffa", half, rest).end())).toBe("aü");
  const refusals = [
    [Buffer.from("schl\u00fcssel", "latin1"), "standard input is not UTF-8 text (line 1)"],
    [Buffer.from("\ufeffpassword\n", "utf16le"), "standard input is UTF-16 text"],
  ] as const;
  for (const [bytes, reason] of refusals) {
    await expect(firstLines(piped(bytes).end(), 1)).rejects.toThrow(reason);
    await expect(readInput(piped(bytes).end())).rejects.toThrow(reason);
  }
});

it("refuses what is longer than it takes", async () => {
  await expect(readInput(piped("ab", "c").end(), 2)).rejects.toThrow("more than 2 bytes");
});
