import { expect, it } from "vitest";
import { readText } from "./http.ts";

const answerOf = (...parts: Uint8Array[]) => {
  const read: Uint8Array[] = [];
  const chunks = (async function* () {
    for (const part of parts) {
      read.push(part);
      yield part;
    }
  })();
  return { read, answer: { status: 200, header: () => null, chunks } };
};

it("reads characters whose bytes came apart, and marks one that never became whole", async () => {
  const bytes = new TextEncoder().encode("a€b");
  const { answer } = answerOf(bytes.subarray(0, 2), bytes.subarray(2, 3), bytes.subarray(3));
  expect(await readText(answer, 5)).toBe("a€b");
  expect(await readText(answerOf(bytes.subarray(0, 3)).answer, 5)).toBe("a\ufffd");
  expect(await readText(answerOf().answer, 5)).toBe("");
});

it("reads no further once there are more bytes than allowed", async () => {
  const part = new TextEncoder().encode("ab");
  expect(await readText(answerOf(part, part).answer, 4)).toBe("abab");
  const { answer, read } = answerOf(part, part, part);
  expect(await readText(answer, 3)).toBe(null);
  expect(read).toHaveLength(2);
});
