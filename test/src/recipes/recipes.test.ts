/** docs/recipes.md with the commands of a checkout. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { lineSource, readSections, readTurn } from "./document.ts";
import { followPage } from "./follow.ts";
import { linkCheckout } from "./reader.ts";

// The rest is the same as with installed packages (test/src/publish).
followPage("docs/recipes.md with npm run link", linkCheckout, 2);

const [, ...recipes] = readSections();

it("the document has nine recipes, each with its expected output", () => {
  expect(recipes).toHaveLength(9);
  for (const { blocks } of recipes) {
    expect(blocks.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["sh", "text"]));
  }
});

it("the workflow runs exactly the recipe's command", () => {
  const page = readFileSync(new URL("../../../docs/recipes.md", import.meta.url), "utf8");
  const steps = [...page.matchAll(/^ {6}- run: (.*)$/gm)].map(([, run = ""]) => run);
  expect(steps[0]).toBe('npm --prefix blindrelay run link -- "$PWD/bin"');
  expect(steps).toHaveLength(2);
  expect(page).toContain(`\n${steps[1]?.replace("bin/", "")}\n`);
});

it("… matches anything, nothing else is a pattern, and ⟨ ⟩ is typed", () => {
  expect('{"a":1}').toMatch(new RegExp(`^${lineSource('{"a":…}')}$`));
  expect("a-b").not.toMatch(new RegExp(lineSource("a.b")));
  expect(readTurn("User name: ⟨ada⟩")).toEqual({ shown: "User name: ", typed: "ada" });
  expect(() => readSections("## A\n```sh\nls")).toThrow("not closed");
});
