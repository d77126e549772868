import fc from "fast-check";
import { expect, test } from "vitest";
import { Arrivals } from "./arrivals.ts";

const MESSAGE = '{"v":"1","p":"AAAA"}';
const ASIDE = '{"type":"ping"}';

/** Counts over all reads. */
function count(stream: string, cuts: readonly number[]): { messages: number; asked: boolean } {
  const arrivals = new Arrivals(Buffer.from(MESSAGE), Buffer.from(ASIDE));
  const bytes = Buffer.from(stream);
  let messages = 0;
  let asked = false;
  let at = 0;
  for (let i = 0; at < bytes.length; i++) {
    const to = Math.min(bytes.length, at + 1 + (cuts[i % cuts.length] as number));
    arrivals.begin();
    arrivals.take(bytes, at, to);
    messages += arrivals.counted;
    asked ||= arrivals.asked;
    at = to;
  }
  return { messages, asked };
}

test("messages are counted and asides reported, wherever the stream is cut", () => {
  const cuts = fc.array(fc.nat(60), { minLength: 1 });
  fc.assert(
    fc.property(fc.array(fc.constantFrom(MESSAGE, ASIDE)), cuts, (said, where) => {
      const messages = said.filter((one) => one === MESSAGE).length;
      expect(count(said.join(""), where)).toEqual({ messages, asked: said.includes(ASIDE) });
    }),
  );
});

test("a message with a changed byte is an error", () => {
  fc.assert(
    fc.property(fc.nat(MESSAGE.length - 1), (at) => {
      const wrong = `${MESSAGE.slice(0, at)}!${MESSAGE.slice(at + 1)}`;
      expect(() => count(wrong, [1_000])).toThrow("was not sent");
    }),
  );
});
