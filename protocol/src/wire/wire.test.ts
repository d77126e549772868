/** Each codec, compared with the schemas and with its counterpart. */
import fc from "fast-check";
import type { TSchema } from "typebox";
import { Value } from "typebox/value";
import { describe, expect, it, vi } from "vitest";
import { ERRORS, isErrorCode } from "../errors.ts";
import {
  AgentStatus,
  Auth,
  AuthFailure,
  AuthSuccess,
  ErrorMessage,
  PacketMessage,
  Ping,
  Pong,
  RelayEnvelope,
} from "../schema/index.ts";
import {
  bindablePart,
  decodeForAgent,
  decodeForClient,
  decodeForRelay,
  encodeAgentAuth,
  encodeAgentStatus,
  encodeAuthenticated,
  encodeAuthFailed,
  encodeClientAuth,
  encodeEnvelope,
  encodeError,
  encodeInForm,
  encodePacket,
  encodeRestarting,
  PING_TEXT,
  PONG_TEXT,
  withAgentId,
} from "./index.ts";

/** Random text that is sometimes valid. */
const text = (...right: string[]) => fc.oneof(fc.constantFrom(...right), fc.string());
const maybe = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof(value, value, fc.integer(), fc.constant(null));

const anyText = fc.oneof(fc.string({ unit: "grapheme" }), fc.string());
const token = fc.string({ unit: "grapheme", maxLength: 80 });
const agentId = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);
const report = fc.stringMatching(/^[ -~]{1,64}$/);
const requestId = fc.stringMatching(/^[ -~]{1,64}$/);
const seconds = fc.nat(86_400);
const failureCode = fc.constantFrom("INVALID_TOKEN", "LOCKED_OUT", "UNAVAILABLE");
const errorCode = fc.constantFrom(...Object.keys(ERRORS));
const packet = fc
  .tuple(fc.constantFrom("1", "2"), fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/), fc.nat(2 ** 31 - 1))
  .map(([v, sid, seq]) => encodePacket(v, sid, seq, "AAAAAAAAAAAAAAAAAAAAAA"));
const sidOf = (packetText: string) => (JSON.parse(packetText) as { sid: string }).sid;

/** The written message is ASCII and matches the schema. */
const fits = (schema: TSchema, message: string): void => {
  expect(message).toMatch(/^[\x20-\x7e]*$/);
  expect(Value.Errors(schema, JSON.parse(message))).toEqual([]);
};

describe("what one side writes fits its schema, and the other side reads the same", () => {
  it("auth of a client", () => {
    fc.assert(
      fc.property(
        token,
        fc.boolean(),
        fc.boolean(),
        fc.option(token),
        (secret, isSession, presence, renews) => {
          const message = encodeClientAuth(secret, isSession, presence, renews);
          fits(Auth, message);
          expect(decodeForRelay(message)).toEqual({
            kind: "auth",
            credentials: {
              ...(isSession ? { sessionToken: secret } : { apiToken: secret }),
              ...(renews === null ? {} : { renews }),
              clientType: "client",
              presence,
              report: { runtime: null, firmwareVersion: null },
            },
            fault: "",
          });
        },
      ),
    );
  });

  it("auth of an agent", () => {
    fc.assert(
      fc.property(
        fc.tuple(token, fc.boolean(), agentId, report, fc.option(report)),
        ([secret, isSession, id, runtime, firmwareVersion]) => {
          const message = encodeAgentAuth(secret, isSession, id, runtime, firmwareVersion);
          fits(Auth, message);
          expect(decodeForRelay(message)).toEqual({
            kind: "auth",
            credentials: {
              ...(isSession ? { sessionToken: secret } : { apiToken: secret }),
              clientType: "agent",
              agentId: id,
              presence: false,
              report: { runtime, firmwareVersion },
            },
            fault: "",
          });
        },
      ),
    );
  });

  it("auth_response, success", () => {
    fc.assert(
      fc.property(
        token,
        seconds,
        fc.integer({ min: 1, max: 10_000 }),
        fc.boolean(),
        (session, expiresIn, max, renewed) => {
          const message = encodeAuthenticated(session, expiresIn, max, renewed);
          fits(AuthSuccess, message);
          const read = { kind: "authenticated", sessionToken: session, expiresIn };
          expect(decodeForAgent(message)).toEqual(read);
          expect(decodeForClient(message)).toEqual({ ...read, renewed });
        },
      ),
    );
  });

  it("auth_response, failure", () => {
    fc.assert(
      fc.property(anyText, failureCode, seconds, (error, code, retryAfter) => {
        const message = encodeAuthFailed(error, code, retryAfter);
        fits(AuthFailure, message);
        const read = { kind: "authFailed", error, code, retryAfter };
        expect(decodeForAgent(message)).toEqual(read);
        expect(decodeForClient(message)).toEqual(read);
      }),
    );
  });

  it("ping and pong, which are written as constants", () => {
    fits(Ping, PING_TEXT);
    fits(Pong, PONG_TEXT);
    const parse = vi.spyOn(JSON, "parse");
    expect(decodeForAgent(PING_TEXT)).toEqual({ kind: "ping" });
    expect(decodeForClient(PING_TEXT)).toEqual({ kind: "ping" });
    expect(decodeForRelay(PING_TEXT)).toEqual({ kind: "ping" });
    expect(decodeForRelay(PONG_TEXT)).toEqual({ kind: "pong" });
    expect(parse).not.toHaveBeenCalled();
    for (const decode of [decodeForAgent, decodeForClient, decodeForRelay])
      expect(decode(' { "type": "ping" } ')).toEqual({ kind: "ping" });
  });

  it("agent_status", () => {
    fc.assert(
      fc.property(agentId, fc.boolean(), (id, online) => {
        const timestamp = "2026-11-21T09:41:07.250Z";
        const message = encodeAgentStatus(id, online, timestamp);
        fits(AgentStatus, message);
        const read = { kind: "agentStatus", agentId: id, online, timestamp };
        expect(decodeForClient(message)).toEqual(read);
        expect(decodeForAgent(message)).toEqual({ kind: "unknown" });
      }),
    );
  });

  it("a packet, bare", () => {
    fc.assert(
      fc.property(packet, (message) => {
        fits(PacketMessage, message);
        const sid = sidOf(message);
        const first = bindablePart(sid);
        expect(decodeForRelay(message)).toEqual({ kind: "packet", sid, first, requestId: null });
        expect(decodeForClient(message)).toEqual({ kind: "packet", first: sid, text: message });
        expect(decodeForAgent(message)).toMatchObject({ kind: "packet", text: message });
      }),
    );
  });

  it("a packet in an envelope", () => {
    fc.assert(
      fc.property(packet, agentId, fc.option(requestId), (inner, id, request) => {
        const message = encodeEnvelope(inner, id, request);
        fits(RelayEnvelope, message);
        const sid = sidOf(inner);
        const read = { kind: "relay", sid, agentId: id, requestId: request, fault: null };
        expect(decodeForRelay(message)).toEqual(read);
        expect(decodeForClient(message)).toEqual({ kind: "packet", first: sid, text: inner });
        const form = { enveloped: true, requestId: request };
        const forAgent = { kind: "packet", text: inner, form, signature: null };
        expect(decodeForAgent(message)).toEqual(forAgent);
        expect(encodeInForm(inner, form, id)).toBe(message);
      }),
    );
  });

  it("error", () => {
    const subject = fc.option(
      fc.record({ sid: fc.option(anyText), requestId: fc.option(requestId) }),
    );
    fc.assert(
      fc.property(errorCode, anyText, subject, (code, error, about) => {
        const message = encodeError(code, error, about);
        fits(ErrorMessage, message);
        const read = { kind: "error", code, error, sid: about?.sid ?? null, reconnectIn: null };
        expect(isErrorCode(code)).toBe(true);
        expect(decodeForAgent(message)).toEqual(read);
        expect(decodeForClient(message)).toEqual(read);
      }),
    );
  });

  it("RESTARTING", () => {
    const message = encodeRestarting("soon back", 7.5);
    fits(ErrorMessage, message);
    const read = { kind: "error", code: "RESTARTING", error: "soon back", sid: null };
    expect(decodeForAgent(message)).toEqual({ ...read, reconnectIn: 7.5 });
    expect(decodeForClient(message)).toEqual({ ...read, reconnectIn: 7.5 });
  });
});

describe("what the relay reads", () => {
  it("accepts every envelope that the schema accepts", () => {
    const candidate = fc.record(
      {
        type: fc.constant("relay"),
        payload: maybe(text("hello", '{"v":"1","sid":"C","seq":0,"p":""}')),
        signature: maybe(text("s")),
        agent_id: maybe(text("lamp")),
        request_id: maybe(text("r", "r".repeat(65), "😀".repeat(64), "😀".repeat(65))),
      },
      { requiredKeys: ["type"] },
    );
    fc.assert(
      fc.property(candidate, (fields) => {
        fc.pre(Value.Check(RelayEnvelope, fields));
        expect(decodeForRelay(JSON.stringify(fields))).toMatchObject({
          kind: "relay",
          fault: null,
        });
      }),
    );
  });

  it("accepts as auth what the schema accepts, if one token and an agent's id are given", () => {
    const candidate = fc.record(
      {
        type: fc.constant("auth"),
        api_token: maybe(fc.string()),
        session_token: maybe(fc.string()),
        client_type: maybe(text("client", "agent", "firmware")),
        agent_id: maybe(text("lamp")),
        presence: maybe(fc.boolean()),
      },
      { requiredKeys: ["type"] },
    );
    fc.assert(
      fc.property(candidate, (fields) => {
        fc.pre(Value.Check(Auth, fields));
        const oneToken =
          Object.hasOwn(fields, "api_token") !== Object.hasOwn(fields, "session_token");
        const named = fields.client_type === "client" || Object.hasOwn(fields, "agent_id");
        const message = decodeForRelay(JSON.stringify(fields));
        expect(message).toMatchObject({ kind: "auth" });
        expect("credentials" in message && message.credentials !== null).toBe(oneToken && named);
      }),
    );
  });

  it.each(["1.5", "1e999", '"1"', "null", "[]"])(
    "does not read a packet with a seq of %s",
    (seq) => {
      const bare = `{"v":"1","sid":"C","seq":${seq},"p":""}`;
      expect(decodeForRelay(bare)).toEqual({ kind: "unreadable" });
      expect(decodeForRelay(encodeEnvelope(bare, "lamp", null))).toMatchObject({ sid: null });
    },
  );
});

describe("every reader", () => {
  const readers = { decodeForAgent, decodeForClient, decodeForRelay };

  it.each(Object.entries(readers))("%s never throws", (_name, decode) => {
    const type = fc.constantFrom("auth", "auth_response", "relay", "error", "agent_status", "ping");
    const typed = fc
      .tuple(type, fc.dictionary(fc.string(), fc.jsonValue()))
      .map(([name, fields]) => JSON.stringify({ ...fields, type: name }));
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), typed), (anything) => {
        decode(anything);
      }),
    );
  });

  it.each(Object.entries(readers))("%s sees only own properties", (_name, decode) => {
    const prototype = Object.prototype as { type?: string };
    prototype.type = "ping";
    try {
      expect(decode("{}").kind).not.toBe("ping");
    } finally {
      delete prototype.type;
    }
  });

  it.each(Object.entries(readers))(
    "%s reports anything but an object as unreadable",
    (_name, decode) => {
      for (const what of ["", "null", "[]", '"ping"', "1", "{"]) {
        expect(decode(what)).toEqual({ kind: "unreadable" });
      }
    },
  );

  it.each(Object.entries(readers))("%s reports a future type as unknown", (_name, decode) => {
    expect(decode('{"type":"future"}')).toEqual({ kind: "unknown" });
  });
});

describe("the part of a sid that the relay binds", () => {
  it.each([
    ["C", "C"],
    ["C.A", "C"],
    ["C.A.B", "C"],
    ["", null],
    [".A", null],
    ["C".repeat(64), "C".repeat(64)],
    [`${"C".repeat(65)}.A`, null],
    ["😀".repeat(64), "😀".repeat(64)],
    [`${"😀".repeat(65)}.A`, null],
  ])("of %j is %j", (sid, first) => {
    expect(bindablePart(sid)).toBe(first);
  });
});

describe("withAgentId", () => {
  it("adds exactly that field to any object's text", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), (fields) => {
        fc.pre(!Object.hasOwn(fields, "agent_id"));
        const bytes = new TextEncoder().encode(`  ${JSON.stringify(fields)}`);
        const spliced = new TextDecoder().decode(withAgentId(bytes, "lamp"));
        expect(JSON.parse(spliced)).toEqual(
          JSON.parse(JSON.stringify({ ...fields, agent_id: "lamp" })),
        );
      }),
    );
  });
});
