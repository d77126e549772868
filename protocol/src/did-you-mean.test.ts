import { expect, it } from "vitest";
import { didYouMean } from "./did-you-mean.ts";

it("the most similar name is suggested, and none that shares too little", () => {
  const ids = ["pump-17", "pump-7", "lamp-7"];
  expect(didYouMean("pump7", ids)).toBe(' (did you mean "pump-7"?)');
  expect(didYouMean("Pump-7", ids)).toBe(' (did you mean "pump-7"?)');
  expect(didYouMean("devcies", ["seed", "devices"])).toBe(' (did you mean "devices"?)');
  expect(didYouMean("x", ["y", "z"])).toBe("");
  expect(didYouMean("pump17", ["pump-17x"])).toBe(' (did you mean "pump-17x"?)');
  expect(didYouMean("abcdefgh", ["abcdexyz"])).toBe("");
  expect(didYouMean("pump-8", ["pump-7", "pump-9"])).toBe(' (did you mean "pump-7"?)');
  expect(didYouMean("boiler", ids)).toBe("");
  expect(didYouMean("pump-7", [])).toBe("");
});
