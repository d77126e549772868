/** The suite of embedded engines with a host's own HMAC. */
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { checkVectors, VECTOR_FILE_NAMES } from "@blindrelay/protocol/testing";
import { expect, it } from "vitest";
import { embeddedSuite, type HostHmac } from "./suite.ts";

const vectors = (field: "hkdf" | "hmac"): object => {
  const path = import.meta.resolve(`@blindrelay/protocol/vectors/${VECTOR_FILE_NAMES[field]}`);
  return { [field]: JSON.parse(readFileSync(new URL(path), "utf8")) };
};

const bytes = (hex: string): Buffer => Buffer.from(hex, "hex");

it.each(["hkdf", "hmac"] as const)(
  "agrees with every case of %s, by the host's function",
  (field) => {
    let calls = 0;
    const hmac: HostHmac = (key, data) => {
      calls++;
      return createHmac("sha256", bytes(key)).update(bytes(data)).digest("hex");
    };
    expect(checkVectors(embeddedSuite({ hmac }), vectors(field))).toEqual([]);
    expect(calls).toBeGreaterThan(0);
  },
);

it("names the function that returned something else", () => {
  const suite = embeddedSuite({ hmac: () => "00" });
  const key = suite.hmacKey(new Uint8Array(32));
  expect(() => suite.hmac(key, new Uint8Array(1))).toThrow("the host's hmac must return 32 bytes");
});
