/** The README's contract agrees with the code. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { ERRORS } from "./errors.ts";
import * as spec from "./spec.ts";
import type { ContractFile } from "./testing/files.ts";
import { TOKEN_PATTERN } from "./tokens.ts";

const read = (name: string): string => readFileSync(new URL(name, import.meta.url), "utf8");
const readme = read("../README.md");
const lines = readme.split("\n");

it("has the error table, row by row", () => {
  const rows = Object.entries(ERRORS).map(
    ([code, { meaning, close, http }]) =>
      `| \`${code}\` | ${meaning} | ${close ?? "-"} | ${http ?? "-"} |`,
  );
  const errors = lines.slice(lines.indexOf("## Errors"));
  expect(errors.filter((line) => /^\| `[A-Z_]+` \|/.test(line))).toEqual(rows);
});

it("has every number of spec.ts and no other", () => {
  const numbers = lines.slice(lines.indexOf("## Numbers"), lines.indexOf("## Errors"));
  const written = numbers.flatMap(
    (line) => /^\| `([A-Z_]+)` \| (\S+) \|/.exec(line)?.slice(1, 3).join(" ") ?? [],
  );
  const inCode = Object.entries(spec).map(([name, value]) => `${name} ${value}`);
  expect(written.sort()).toEqual(inCode.sort());
});

it("has the worked example of contract.json", () => {
  const contract = JSON.parse(read("../vectors/contract.json")) as ContractFile;
  const one = contract.vectors.find(({ v }) => v === "1");
  if (one === undefined) throw new Error("contract.json has no vector of suite 1");
  const { c2a_key, c2a_iv } = one.keys_of_C;
  const said = [
    ...[one.agent_id, one.agent_token, one.device_random, one.C, one.A, one.prk],
    ...[one.epoch_secret, one.epoch_secret_after_first_data, c2a_key, c2a_iv],
    ...Object.values(one.keys_of_sid),
    ...[one.opening, one.answer, one.data.plaintext, one.data.packet],
    ...[one.reply.plaintext, one.reply.packet, one.signature_of_opening],
  ];
  for (const text of said) expect(readme).toContain(text);
  for (const { token } of contract.tokens.slice(0, 3)) expect(readme).toContain(token);
});

it("has the pattern for secret scanners", () => {
  expect(readme).toContain(`\`${TOKEN_PATTERN}\``);
});
