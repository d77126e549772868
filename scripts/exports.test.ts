/** Each published package's README lists what its entry points export (types aside). */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "..");
const PACKAGES = ["protocol", "agent-sdk", "client-sdk", "relay-server", "simulator"];

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** A line of the list: the entry, and its names. */
const LINE = /^- `(@blindrelay\/[^`]+)`(.*)$/gm;

const listed = (name: string): Record<string, string[]> => {
  const [, section = ""] = read(`${name}/README.md`).split(/^## Exports$/m);
  return Object.fromEntries(
    [...(section.split(/^## /m)[0] ?? "").matchAll(LINE)].map(([, entry, names]) => [
      entry,
      [...(names ?? "").matchAll(/`([^`]+)`/g)].map(([, each]) => each as string).sort(),
    ]),
  );
};

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  readonly publishConfig: { readonly exports: object };
}

const exported = async (name: string): Promise<Record<string, string[]>> => {
  const { exports, publishConfig } = JSON.parse(read(`${name}/package.json`)) as Manifest;
  const entries = Object.keys(publishConfig.exports).filter((key) => !key.includes("*"));
  return Object.fromEntries(
    await Promise.all(
      entries.map(async (key) => {
        const source = exports[key] as string | { readonly default: string };
        const path = typeof source === "string" ? source : source.default;
        const names = Object.keys((await import(join(ROOT, name, path))) as object).sort();
        return [`@blindrelay/${name}${key.slice(1)}`, names];
      }),
    ),
  );
};

it.each(PACKAGES)("the README of %s lists what it exports", async (name) => {
  expect(listed(name)).toEqual(await exported(name));
});
