/** What the oracle of a device's secrets objects to. */
import { expect, it } from "vitest";
import { SecretsOracle } from "./secrets.ts";

const device = () => {
  const violations: string[] = [];
  const oracle = new SecretsOracle((what) => violations.push(what), "old");
  oracle.started("old", null, 0, ["old"]);
  oracle.hold("new");
  return { oracle, violations };
};

it("lets a device answer to both secrets during a trial, and to the new one after it", () => {
  const { oracle, violations } = device();
  oracle.tries("new", 1_000);
  for (const token of ["old", "new"]) oracle.answers(token, 2_000);
  oracle.started("old", "new", 3_000, ["old new"]);
  for (const token of ["old", "new"]) oracle.answers(token, 4_000);
  oracle.replaced(["new"]);
  oracle.release("old");
  oracle.answers("new", 5_000);
  oracle.started("new", null, 6_000, ["new"]);
  expect(violations).toEqual([]);
});

it("lets a cut decide whether the secret on trial has replaced the other", () => {
  for (const present of ["old", "new"]) {
    const { oracle, violations } = device();
    oracle.tries("new", 1_000);
    oracle.started(present, null, 2_000, [present]);
    expect(violations).toEqual([]);
  }
});

it("objects to a device that answers to a secret that it does not have any more, or not yet", () => {
  const { oracle, violations } = device();
  oracle.answers("new", 1_000);
  oracle.tries("new", 1_000);
  oracle.replaced([]);
  oracle.answers("old", 2_000);
  oracle.answers("third", 2_000);
  expect(violations).toEqual([
    "answers to a secret that is not on trial",
    "answers to a secret that was replaced",
    "answers to a secret that nobody holds",
  ]);
});

it("objects to a secret that its owner has proven and a start does not have", () => {
  const { oracle, violations } = device();
  oracle.tries("new", 1_000);
  oracle.replaced([]);
  oracle.release("old");
  oracle.started("old", null, 2_000, []);
  expect(violations).toEqual([
    "starts with a secret that was replaced",
    "has a secret that nobody holds",
  ]);
});

it("objects to a trial at a second start, and after its time", () => {
  const { oracle, violations } = device();
  oracle.tries("new", 1_000);
  oracle.answers("new", 601_000);
  expect(violations).toEqual([]);
  oracle.answers("new", 603_000);
  oracle.started("old", "new", 604_000, []);
  oracle.started("old", "new", 605_000, []);
  expect(violations).toEqual([
    "answers to a secret whose trial is over",
    "has a trial at start 2 after it began",
  ]);
});

it("objects to a medium that still has a secret that was replaced", () => {
  const { oracle, violations } = device();
  oracle.tries("new", 1_000);
  oracle.replaced(["new", "old and new"]);
  expect(violations).toEqual(["still has a secret that was replaced on its medium"]);
});
