import { expect, it } from "vitest";
import { Bindings } from "./bindings.ts";

const known = (bindings: Bindings, firsts: string) =>
  [...firsts].filter((first) => bindings.use(first)).join("");

it("a sid is bound once it was added, and not before", () => {
  const bindings = new Bindings(3);
  expect(bindings.use("a")).toBe(false);
  bindings.add("a");
  expect(bindings.use("a")).toBe(true);
  expect(bindings.use("b")).toBe(false);
});

it("the least recently used binding is dropped where there are too many", () => {
  const bindings = new Bindings(3);
  for (const first of "abcd") bindings.add(first);
  expect(known(bindings, "abcd")).toBe("bcd");
});

it("a packet in either direction is a use of a binding, and so is a repeated envelope", () => {
  const bindings = new Bindings(3);
  for (const first of "abc") bindings.add(first);
  bindings.use("a");
  bindings.add("b");
  bindings.add("d");
  expect(known(bindings, "abcd")).toBe("abd");
});

it("the latest binding is dropped too once others were used after it", () => {
  const bindings = new Bindings(2);
  bindings.add("a");
  bindings.add("b");
  bindings.use("a");
  bindings.add("c");
  bindings.use("a");
  bindings.add("d");
  expect(known(bindings, "bcad")).toBe("ad");
});

it("a new link has no binding, not even the latest", () => {
  const bindings = new Bindings(3);
  for (const first of "abc") bindings.add(first);
  bindings.clear();
  expect(known(bindings, "cba")).toBe("");
});
