import { expect, it } from "vitest";
import { REASONS, reasonOfAnswer, reasonOfError } from "./reasons.ts";

const failed = (message: string, code?: unknown, more: object = {}): Error =>
  Object.assign(new Error(message), code === undefined ? {} : { code }, more);

it("the reason of an error is found by its code, or else by its text, and comes with its fix", () => {
  const refused = failed("connect ECONNREFUSED 127.0.0.1:1", "ECONNREFUSED");
  const text = `connect ECONNREFUSED 127.0.0.1:1; fix: ${REASONS.refused.fix}`;
  expect(reasonOfError(refused)).toEqual({ name: "refused", text });
  expect(reasonOfError(failed("getaddrinfo EAI_AGAIN a")).name).toBe("unknown_host");
  // The code says more than what the text resembles.
  expect(reasonOfError(failed("a certificate is odd", "ENETUNREACH")).name).toBe("no_route");
  expect(reasonOfError(failed("certificate has expired", "ERR_ODD")).name).toBe("expired");
});

it("an error that nobody knows is told as it is, with no fix", () => {
  expect(reasonOfError(failed("odd"))).toEqual({ name: "unknown", text: "odd" });
  expect(reasonOfError(failed("", "ERR_ODD"))).toEqual({ name: "unknown", text: "ERR_ODD" });
  expect(reasonOfError("thrown")).toEqual({ name: "unknown", text: "thrown" });
});

it("the reason is the cause that fetch hides, or the first of several addresses", () => {
  const cause = failed("self-signed certificate", "DEPTH_ZERO_SELF_SIGNED_CERT");
  const hidden = reasonOfError(new TypeError("fetch failed", { cause }));
  expect([hidden.name, hidden.text.split(";")[0]]).toEqual([
    "untrusted",
    "self-signed certificate",
  ]);
  // An error with a code of its own is no wrapper, and what is no error is no cause.
  const own = failed("no answer", "PROXY_AWAY", { cause });
  expect(reasonOfError(own).name).toBe("proxy_away");
  expect(reasonOfError(new Error("odd", { cause: "ECONNREFUSED" })).name).toBe("unknown");
  const both = new AggregateError([failed("connect ENETUNREACH ::1", "ENETUNREACH")], "");
  const first = reasonOfError(both);
  expect([first.name, first.text.split(";")[0]]).toEqual(["no_route", "connect ENETUNREACH ::1"]);
  expect(reasonOfError(failed("odd", undefined, { errors: [] })).text).toBe("odd");
});

it.each(["write EPROTO ", ""])("of OpenSSL's texts only the words are told: %j", (before) => {
  const path = "../deps/openssl/openssl/ssl/record/methods/tlsany_meth.c:78:\n";
  const what = `${before}00F8FF:error`;
  const text = `${before}40F8B2B2C77F0000:error:0A00010B:SSL routines:tls_validate:wrong version number:${path}`;
  const told = reasonOfError(failed(text, "EPROTO"));
  expect(told.name).toBe("no_tls");
  expect(told.text).toBe(`TLS failed, wrong version number; fix: ${REASONS.no_tls.fix}`);
  const short = text.replace(` ${path}`, "").replace("\n", "");
  expect(reasonOfError(failed(short, "EPROTO")).text).toBe(told.text);
  // Too short for one of those numbers.
  expect(reasonOfError(failed(what)).text).toContain(what);
});

it("what answered in place of a relay is told with its status and type", () => {
  const said = (status: number, type?: string | null, location?: string | null) => {
    const { name, text } = reasonOfAnswer(status, type, location);
    return [name, text.split("; fix: ")[0]];
  };
  const unlike = (what: string) => `this address answered ${what}, unlike a relay`;
  expect(said(200, "text/html; charset=utf-8")).toEqual([
    "not_a_relay",
    unlike("200 with text/html"),
  ]);
  for (const type of [null, undefined, "", "; charset=utf-8"]) {
    expect(said(404, type)).toEqual(["not_a_relay", unlike("404 with nothing")]);
  }
  expect([501, 502, 503, 504, 505].map((status) => said(status)[0])).toEqual([
    "not_a_relay",
    "gateway",
    "gateway",
    "gateway",
    "not_a_relay",
  ]);
  expect(said(200, "x".repeat(100))[1]).toBe(unlike(`200 with ${"x".repeat(80)}`));
});

it("a redirection is told with where it points, if it says so", () => {
  const points = (status: number, location: string | null) =>
    reasonOfAnswer(status, null, location).text.split(";")[0];
  for (const status of [300, 308, 399])
    expect(points(status, "https://b")).toBe("this address points to https://b");
  for (const status of [299, 400]) expect(points(status, "https://b")).not.toContain("points");
  expect(points(308, null)).not.toContain("points");
  expect(points(308, "x".repeat(300))).toBe(`this address points to ${"x".repeat(200)}`);
});
