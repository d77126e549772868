import { PassThrough, Writable } from "node:stream";
import { expect, it } from "vitest";
import { asking, Unanswered } from "./prompt.ts";

const terminal = (isTTY = true) => {
  const stdin = Object.assign(new PassThrough(), { isTTY });
  let shown = "";
  const stderr = new Writable({
    write: (chunk, _encoding, done) => {
      shown += chunk;
      done();
    },
  });
  return { stdin, stderr, type: (text: string) => stdin.write(text), shown: () => shown };
};
/** Until the terminal's input has been read. */
const read = () => new Promise((resolve) => setImmediate(resolve));

it("without a terminal nobody is asked, and the reason says what to do instead", async () => {
  const asked = asking("use --token", async () => "asked", terminal(false));
  await expect(asked).rejects.toMatchObject({
    kind: "usage",
    exitCode: 2,
    message: "there is no terminal to ask on: use --token",
  });
});

it("an answer is shown while it is typed, and a hidden one is not", async () => {
  const { type, shown, ...rest } = terminal();
  const done = asking(
    "",
    async ({ ask, askHidden }) => [await ask("Name: "), await askHidden("Password: ")],
    rest,
  );
  await read();
  type("ada\r");
  await read();
  expect(shown()).toContain("Name: ");
  expect(shown()).toContain("ada");
  expect(shown().match(/Name: /g)).toHaveLength(1);
  const before = shown().length;
  type("hidden\r");
  expect(await done).toEqual(["ada", "hidden"]);
  expect(shown().slice(before)).toBe("\n");
  expect(shown()).toContain("Password: ");
});

it("an answer may contain what was typed wrongly and mended", async () => {
  const { type, ...rest } = terminal();
  const done = asking("", ({ askHidden }) => askHidden("Password: "), rest);
  await read();
  type("hx\u007fidden\r");
  expect(await done).toBe("hidden");
});

it("an answer that is not UTF-8 is refused, as one character would be like another", async () => {
  const { stdin, ...rest } = terminal();
  const done = asking("", ({ askHidden }) => askHidden("Password: "), { stdin, ...rest });
  await read();
  stdin.write(Buffer.from("schl\u00fcssel\r", "latin1"));
  await expect(done).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringContaining("does not send UTF-8"),
  });
});

it("lines that are typed ahead answer the next questions, and only what is no secret is shown", async () => {
  const { type, shown, ...rest } = terminal();
  const done = asking(
    "",
    async ({ ask, askHidden }) => {
      const first = await ask("Name: ");
      await read();
      return [first, await askHidden("Password: "), await ask("Place: ")];
    },
    rest,
  );
  await read();
  type("ada\rsecret\rhall\r");
  expect(await done).toEqual(["ada", "secret", "hall"]);
  expect(shown()).toContain("Password: \nPlace: hall\n");
  expect(shown()).not.toContain("secret");
});

it("what is typed before the first question is not shown", async () => {
  const { type, shown, ...rest } = terminal();
  type("secret\rada\r");
  const done = asking(
    "",
    async ({ ask, askHidden }) => {
      await read();
      return [await askHidden("Password: "), await ask("Name: ")];
    },
    rest,
  );
  expect(await done).toEqual(["secret", "ada"]);
  expect(shown()).toBe("Password: \nName: ada\n");
});

it.each([
  ["Ctrl-C", "\u0003", "interrupted", "interrupted", 130],
  ["Ctrl-D", "\u0004", "usage", "not answered", 2],
])("%s ends the question and all that would follow", async (_key, typed, kind, why, exitCode) => {
  const { type, shown, ...rest } = terminal();
  const done = asking(
    "",
    async ({ ask }) => {
      const first = await ask("Name: ").catch((error: unknown) => error);
      const second = await ask("Place: ").catch((error: unknown) => error);
      return [first, second];
    },
    rest,
  );
  await read();
  type(typed);
  const [first, second] = (await done) as [Unanswered, Unanswered];
  expect(first).toBeInstanceOf(Unanswered);
  expect(first).toMatchObject({ kind, why, exitCode, message: `${why}; nothing was done` });
  expect(second).toBe(first);
  expect(shown()).toMatch(/Name: .*\n$/s);
  expect(shown().match(/\n/g)).toHaveLength(1);
});

it("an input that ends, ends the question", async () => {
  const { stdin, ...rest } = terminal();
  const done = asking("", ({ ask }) => ask("Name: "), { stdin, ...rest });
  await read();
  stdin.end();
  await expect(done).rejects.toMatchObject({ kind: "usage", why: "not answered" });
});

it("the terminal is let go, whatever came of the questions", async () => {
  const { stdin, type, shown, ...rest } = terminal();
  const done = asking("", async () => Promise.reject(new Error("fault")), { stdin, ...rest });
  await expect(done).rejects.toThrow("fault");
  expect([stdin.isPaused(), shown()]).toEqual([true, ""]);
});

it("a question that is put off until the terminal was let go is not answered", async () => {
  const { type, ...rest } = terminal();
  let late: Promise<string> | undefined;
  await asking(
    "",
    async ({ ask }) => {
      late = read().then(() => ask("Name: "));
    },
    rest,
  );
  await expect(late).rejects.toMatchObject({ kind: "usage", why: "not answered" });
});
