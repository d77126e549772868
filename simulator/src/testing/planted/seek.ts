/**
 * One job of a search in this process, with a planted bug (preload.ts), until it finds something:
 * `seek.ts SEED [--small]`. Prints the finding and how many cases it took. `--small`: around two
 * devices, where each case is cheap; else everything is drawn.
 */
import type { Scenario } from "../../scenario/schema.ts";
import { hunt } from "../../search/hunt.ts";
import { loadPrograms } from "../../virtual/programs.ts";

/** Many times what it takes. */
const LIMIT_MS = 300_000;

const SMALL: Scenario = {
  name: "small",
  duration: "2m",
  devices: [{ group: "lamps", count: 2, kind: "echo" }],
  clients: [{ devices: "lamps", every: "30s", presence: true }],
};
const isSmall = process.argv.includes("--small");
const ended = new AbortController();
let cases = 0;
await hunt(
  {
    seed: Number(process.argv[2] ?? "1"),
    job: 0,
    from: 0,
    jobs: 1,
    ...(isSmall ? { base: { scenario: SMALL, methods: [] } } : {}),
    programs: loadPrograms({ name: "drawn", duration: "1s", devices: [] }, "."),
    folder: ".",
    corpus: [],
    known: new Set(),
    endsAt: performance.now() + LIMIT_MS,
    signal: ended.signal,
  },
  {
    begun: () => undefined,
    played: (count) => {
      cases = count;
    },
    found: (finding) => {
      process.stdout.write(`${JSON.stringify({ ...finding, cases })}\n`);
      ended.abort();
    },
    kept: () => undefined,
    said: () => undefined,
  },
);
