/** Nodes that are restarted and killed under calls: the program for that, scaled. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { noCluster, noNatsServer, noPostgresPrograms } from "@blindrelay/relay-server/testing";
import { expect, test } from "vitest";

const MAIN = join(import.meta.dirname, "../cluster/rolling/main.ts");
const LOAD = [
  "--agents",
  "30",
  "--boards",
  "6",
  "--clients",
  "3",
  "--calls",
  "300",
  "--rate",
  "60",
];
const KINDS = ["restarted", "killed", "rotated"];

test.skipIf(noCluster || noNatsServer || noPostgresPrograms)(
  "npm run rolling, scaled: no call is lost, run twice or late",
  async () => {
    const flags = [...LOAD, "--kind", KINDS.join(",")];
    const child = spawn(process.execPath, [MAIN, ...flags], { stdio: ["ignore", "pipe", "pipe"] });
    const ended = once(child, "exit");
    const [said, complaints] = await Promise.all([text(child.stdout), text(child.stderr)]);
    const [code] = await ended;
    expect([code, said], complaints).toEqual([0, said]);
    const kinds = said
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { kind: string });
    expect(kinds.map(({ kind }) => kind)).toEqual(KINDS);
  },
);
