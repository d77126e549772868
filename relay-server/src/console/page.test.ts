/** The console's files of an installed relay. */
import { afterAll, expect, test, vi } from "vitest";

afterAll(() => {
  vi.doUnmock("node:fs");
  vi.doUnmock("node:fs/promises");
  vi.resetModules();
});

test("are read once, so that many slow downloads hold one copy", async () => {
  const readFile = vi.fn(async (path: string) => Buffer.from(path));
  vi.doMock("node:fs", () => ({ existsSync: () => false }));
  vi.doMock("node:fs/promises", () => ({ readFile }));
  vi.resetModules();
  const { CONSOLE_FILES, CONSOLE_PAGE } = await import("./page.ts");
  const files = [CONSOLE_PAGE, ...Object.values(CONSOLE_FILES)];
  expect(files.length).toBeGreaterThan(3);
  for (const { read } of files) expect(await read()).toBe(await read());
  expect(readFile).toHaveBeenCalledTimes(files.length);
  expect(String(await CONSOLE_PAGE.read())).toMatch(/dist\/viewers\/console\/index\.html$/);
});
