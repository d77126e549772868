/** Standard input of `attach --stdio`. */
import { Readable } from "node:stream";
import { expect, it } from "vitest";
import type { Remote } from "./local-side.ts";
import { openStdio } from "./stdio-side.ts";

it("that breaks, as a socket does that is reset, is at its end", async () => {
  const stdin = Object.getOwnPropertyDescriptor(process, "stdin") as PropertyDescriptor;
  const broken = new Readable({ read: () => undefined });
  Object.defineProperty(process, "stdin", { configurable: true, value: broken });
  try {
    const ended = new Promise((resolve) => openStdio({} as Remote, resolve));
    broken.destroy(new Error("read ECONNRESET"));
    expect(await ended).toBe(true);
  } finally {
    Object.defineProperty(process, "stdin", stdin);
  }
});
