import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { firstLines } from "./first-lines.ts";

const piped = (...chunks: string[]): PassThrough => {
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
