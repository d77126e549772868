/**
 * docs/recipes.md, done as it is written. Only the block that the page calls the reader's own gets
 * other values: a free port of this machine, and the terminal where the test plays the device.
 */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { Cable, HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { afterAll, describe, expect, it } from "vitest";
import { playArduino, playSwitch } from "./devices.ts";
import { lineSource, readSections, readTurn, type Section } from "./document.ts";
import { Reader } from "./reader.ts";

const DEVICES: { readonly [title: string]: typeof playArduino } = {
  "An Arduino with a line protocol": playArduino,
  "A remote serial terminal": playSwitch,
};

const [before, ...recipes] = readSections() as [Section, ...Section[]];

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
};

const ends: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of ends) await end();
});

describe.skipIf(!HAS_SOCAT)("docs/recipes.md", () => {
  it.each(recipes)("$title", { timeout: 180_000 }, async ({ title, blocks }) => {
    const port = await freePort();
    const cable = new Cable();
    ends.push(() => cable.end());
    const play = DEVICES[title];
    if (play !== undefined) ends.unshift(play(cable, await cable.plug()));
    const reader = new Reader({
      BLINDRELAY_PORT: String(port),
      BLINDRELAY_URL: `http://127.0.0.1:${port}`,
      TTY: cable.path,
    });
    ends.unshift(() => reader.close());
    for (const block of [...before.blocks, ...blocks]) await reader.follow(block);
  });
});

it("the page holds five recipes, and each says what comes of it", () => {
  expect(recipes).toHaveLength(5);
  for (const { blocks } of recipes) {
    expect(blocks.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["sh", "text"]));
  }
});

it("… is anything, nothing else is a pattern, and ⟨ ⟩ is typed", () => {
  expect('{"a":1}').toMatch(new RegExp(`^${lineSource('{"a":…}')}$`));
  expect("a-b").not.toMatch(new RegExp(lineSource("a.b")));
  expect(readTurn("User name: ⟨ada⟩")).toEqual({ shown: "User name: ", typed: "ada" });
  expect(() => readSections("## A\n```sh\nls")).toThrow("not closed");
});
