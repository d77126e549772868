/**
 * Whatever a server answers over REST: a command ends with a documented exit code, never with a bug
 * of ours; it prints nothing that the relay did not say; and no secret of the keyring is lost.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import fc from "fast-check";
import { HttpResponse, http } from "msw";
import { setupServer } from "msw/node";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { makeCli } from "./cli.ts";
import { writeProfile } from "./config/profile.ts";
import { type Case, everyCommand, PROFILE, prepare, run, tidy } from "./testing/every-command.ts";

const folder = mkdtempSync(join(tmpdir(), "blindrelay-hostile-"));
const path = join(folder, "default.json");
const COMMANDS = everyCommand(folder);
const CASES = Object.values(COMMANDS)
  .flat()
  .filter(({ honest }) => Object.keys(honest).length > 0);

const SHAPELESS = fc.oneof(
  fc.constantFrom("", "<title>Log in</title>", "null", "[]", "0", '"x"', "{", "\u0000"),
  fc.json({ maxDepth: 3 }),
);

/** An honest answer in which one member is gone or has another value. */
const damaged = (honest: object): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.constantFrom(...Object.keys(honest), "more"),
      fc.option(fc.jsonValue({ maxDepth: 1 })),
    )
    .map(([name, value]) => {
      const { [name as keyof object]: _, ...others } = honest;
      return JSON.stringify(value === null ? others : { ...others, [name]: value });
    });

/** An honest answer, but about an agent whose secret is in the keyring. */
const anotherAgent = (honest: object): fc.Arbitrary<string> =>
  fc.constant(JSON.stringify({ ...honest, agent_id: "pump-7" }));

const STATUS = fc.constantFrom(
  200,
  200,
  200,
  201,
  204,
  301,
  400,
  401,
  404,
  409,
  422,
  429,
  500,
  503,
);

const server = setupServer();
beforeAll(() => {
  server.listen({ onUnhandledFrame: "bypass" });
  prepare(folder);
});
afterEach(() => server.resetHandlers());
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const read = (): string => readFileSync(path, "utf8");

const namesOf = (command: Command, before: readonly string[] = []): string[] =>
  command.commands.flatMap((each) => {
    const words = [...before, each.name()];
    return each.commands.length === 0 ? [words.join(" ")] : namesOf(each, words);
  });

it("knows every command", async () => {
  expect(Object.keys(COMMANDS).sort()).toEqual(namesOf(await makeCli({})).sort());
});

/** What a server may send in the place of one honest answer. */
interface Lie {
  readonly status: number;
  readonly body: string;
}

const lieAbout = (honest: object): fc.Arbitrary<Lie> =>
  fc.record({
    status: STATUS,
    body: fc.oneof(damaged(honest), anotherAgent(honest), SHAPELESS),
  });

const answerOf = ({ status, body }: Lie): Response => {
  const headers = { "content-type": "application/json", location: "https://a.example/" };
  return new HttpResponse(status === 204 ? null : body, { status, headers });
};

/** What an honest relay answers; nothing to say is 204. */
const truthOf = (answer: object): Lie =>
  Object.keys(answer).length === 0
    ? { status: 204, body: "" }
    : { status: 200, body: JSON.stringify(answer) };

/** Runs the command against a server that lies at `place`; what it said and how it ended. */
const runLied = async (each: Case, place: string, lie: Lie) => {
  const { honest, waits = false } = each;
  let hasLied = false;
  server.use(
    http.all(`${PROFILE.url}/api/v1/*`, ({ request }) => {
      const { pathname } = new URL(request.url);
      const end = Object.keys(honest).find((one) => pathname.endsWith(one));
      const isHonest = end !== place || (waits && hasLied);
      if (end !== undefined && isHonest) return answerOf(truthOf(honest[end] as object));
      hasLied = true;
      return answerOf(lie);
    }),
  );
  try {
    return { ...(await run(each, { BLINDRELAY_CONFIG_DIR: folder })), hasLied };
  } finally {
    server.resetHandlers();
    tidy(folder);
  }
};

it.each(CASES)("$words ends well, whatever answers", async (each) => {
  const { words, honest, runs = 30, ends = 0 } = each;
  const places = fc.constantFrom(...Object.keys(honest)).chain((place) =>
    fc.record({
      place: fc.constant(place),
      lie: lieAbout(honest[place] as object),
    }),
  );
  const [truth = ["", {}]] = Object.entries(honest);
  writeProfile(path, PROFILE);
  expect((await runLied(each, truth[0], truthOf(truth[1]))).code).toBe(ends);
  let lies = 0;
  await fc.assert(
    fc.asyncProperty(places, async ({ place, lie }) => {
      writeProfile(path, PROFILE);
      const { code, said, hasLied } = await runLied(each, place, lie);
      if (hasLied) lies++;
      expect([0, 2, 4, 5, 6, ends]).toContain(code);
      expect(said).not.toMatch(/undefined|NaN|\[object|a bug in blindrelay/);
      // Whatever the relay claims, the only copy of the device's secret is still there.
      const isMeant = words[1] === "rm" || (words.includes("--secret") && code === 0);
      if (!isMeant) expect(read()).toContain(PROFILE.keyring["pump-7"]?.agent_token);
      if (code !== 0) expect(read()).toContain(PROFILE.account_token);
    }),
    { numRuns: runs },
  );
  // A command that asks nothing, or no longer what the table says, would pass without a test.
  expect(lies).toBeGreaterThan(runs / 10);
});
