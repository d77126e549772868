/** A password is piped in, or typed twice at a terminal that does not show it. */
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { readPassword } from "./password.ts";

const streams = (isTTY: boolean) => ({
  stdin: Object.assign(new PassThrough(), isTTY ? { isTTY } : {}),
  stderr: new PassThrough(),
});

test.each([
  [true, "Type the password (it is shown), then Enter and Ctrl-D.\n"],
  [false, ""],
])("with the flag it is read to the end; at a terminal: %j", async (isTTY, told) => {
  const { stdin, stderr } = streams(isTTY);
  const reading = readPassword(true, { stdin, stderr });
  stderr.end();
  expect(await text(stderr)).toBe(told);
  stdin.end("correct horse\r\n");
  expect(await reading).toBe("correct horse");
});

test("a byte order mark is no part of it, and what is not UTF-8 is refused", async () => {
  const pipe = (bytes: Buffer): Promise<string> => {
    const { stdin, stderr } = streams(false);
    stdin.end(bytes);
    return readPassword(true, { stdin, stderr });
  };
  expect(await pipe(Buffer.from("\ufeffcorrect horse\n"))).toBe("correct horse");
  await expect(pipe(Buffer.from("schl\u00fcssel", "latin1"))).rejects.toMatchObject({
    exitCode: 2,
    message: "standard input is not UTF-8 text (line 1); save it as UTF-8",
  });
  await expect(pipe(Buffer.from("\ufeffhorse", "utf16le"))).rejects.toThrow("UTF-16");
});

test("standard input that breaks is told, not a bug", async () => {
  const { stdin, stderr } = streams(false);
  const reading = readPassword(true, { stdin, stderr });
  stdin.destroy(new Error("read ECONNRESET"));
  await expect(reading).rejects.toMatchObject({
    exitCode: 2,
    message: "standard input cannot be read: read ECONNRESET",
  });
});

test("without flag and terminal nothing is read", async () => {
  await expect(readPassword(undefined, streams(false))).rejects.toMatchObject({ exitCode: 2 });
});

describe("without the flag a terminal", () => {
  /** What came of the keys, and what was shown. */
  const type = async (keys: readonly string[]) => {
    const { stdin, stderr } = streams(true);
    const reading = readPassword(undefined, { stdin, stderr }).catch((error) => error);
    for (const each of keys) {
      await new Promise((resolve) => stderr.once("data", resolve));
      stdin.write(each);
    }
    const outcome = await reading;
    stderr.end();
    return { outcome, shown: await text(stderr) };
  };

  test("asks twice, and shows nothing", async () => {
    const { outcome, shown } = await type(["correct horsf\x7fe\r", "correct horse\r"]);
    expect([outcome, shown]).toEqual(["correct horse", expect.not.stringContaining("horse")]);
  });

  // nodejs/node#60415
  test("may be pasted twice at once", async () => {
    const { outcome } = await type(["correct horse\rcorrect horse\r"]);
    expect(outcome).toBe("correct horse");
  });

  test.each([
    ["differs", ["correct horse\r", "another horse\r"], 2, /differ; nothing was done/],
    ["is interrupted", ["corr\x03"], 130, /interrupted; nothing was done/],
    ["is ended", ["\x04"], 2, /not answered; nothing was done/],
  ])("that %s does nothing", async (_name, keys, exitCode, message) => {
    const { outcome } = await type(keys);
    expect(outcome).toMatchObject({ exitCode, message: expect.stringMatching(message) });
  });
});
