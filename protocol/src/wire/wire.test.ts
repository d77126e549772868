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
    for (const decode of [decodeForClient, decodeForRelay])
      expect(decode(' { "type": "pong" } ')).toEqual({ kind: "pong" });
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
        expect(JSON.parse(message).request_id ?? null).toBe(about?.requestId ?? null);
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

const UNREADABLE = { kind: "unreadable" };
const PACKET = { v: "1", sid: "C.A", seq: 1, p: "x" };

describe("a field that is missing or of another kind", () => {
  const refusal = { kind: "authFailed", code: null, error: "", retryAfter: null };
  const success = { kind: "authenticated", sessionToken: null, expiresIn: null };
  const error = { kind: "error", code: "X", error: "", sid: null, reconnectIn: null };

  const typed = { type: "auth_response", status: "authenticated", session_token: 7 };
  it.each<[object, object]>([
    [{ type: "error" }, UNREADABLE],
    [{ type: "error", code: 7 }, UNREADABLE],
    [{ type: "error", code: "X" }, error],
    [{ type: "error", code: "X", error: 7, sid: 7, reconnect_in: "5" }, error],
    [{ type: "error", code: "X", reconnect_in: -1 }, error],
    [{ type: "auth_response" }, refusal],
    [{ type: "auth_response", code: 7, error: 7, retry_after: true }, refusal],
    [{ type: "auth_response", status: "authenticated" }, success],
    [{ ...typed, expires_in: "60" }, success],
    [{ type: "relay" }, UNREADABLE],
    [{ type: "relay", payload: PACKET }, UNREADABLE],
  ])("in %j is read as absent, or makes it unreadable, by both peers", (fields, message) => {
    expect(decodeForAgent(JSON.stringify(fields))).toEqual(message);
    expect(decodeForClient(JSON.stringify(fields))).toMatchObject(message);
  });

  const payloads = ["[]", "7", "null", '{"v":"1"}', JSON.stringify({ ...PACKET, type: "x" })];
  it.each<object>([
    { type: "agent_status", online: true },
    { type: "agent_status", agent_id: "lamp", online: 1 },
    ...["v", "sid", "seq", "p"].map((name) => ({ ...PACKET, [name]: null })),
    ...payloads.map((payload) => ({ type: "relay", payload })),
  ])("makes %j unreadable to a client", (fields) => {
    expect(decodeForClient(JSON.stringify(fields))).toEqual(UNREADABLE);
  });

  it("is a time that a client need not know, or a type that is no text", () => {
    const status = '{"type":"agent_status","agent_id":"lamp","online":false}';
    expect(decodeForClient(status)).toMatchObject({ online: false, timestamp: "" });
    const typed = JSON.stringify({ ...PACKET, type: 7 });
    expect(decodeForClient(typed)).toEqual({ kind: "packet", first: "C", text: typed });
  });

  const tooLong = "x".repeat(65);
  const reports = "runtime and firmware_version must have 1 to 64 printable ASCII characters";
  it.each<[object, string]>([
    [{ session_token: "s" }, "auth needs exactly one of api_token and session_token"],
    [{ api_token: 7 }, "the token must be a string"],
    [{ client_type: "boss" }, "client_type must be client, agent or firmware"],
    [{ client_type: "agent" }, "an agent's auth needs its agent_id"],
    [{ renews: 7 }, "renews must be a session token"],
    [{ presence: 1 }, "presence must be true or false"],
    ...["", "\u00e9x", "x\n", tooLong, 7, null, ["x"]].flatMap((report): [object, string][] => [
      [{ runtime: report }, reports],
      [{ firmware_version: report }, reports],
    ]),
  ])("makes an auth with %j invalid, and the relay says how", (fields, fault) => {
    const auth = { type: "auth", api_token: "t", client_type: "client", ...fields };
    const message = { kind: "auth", credentials: null, fault };
    expect(decodeForRelay(JSON.stringify(auth))).toEqual(message);
  });

  it("is in no credentials: those have one token, and what else was given", () => {
    const names = (fields: object) => {
      const message = decodeForRelay(JSON.stringify({ type: "auth", ...fields }));
      return "credentials" in message && Object.keys(message.credentials ?? {}).slice(3);
    };
    const runtime = "x".repeat(64);
    expect(names({ api_token: "t", client_type: "client", runtime })).toEqual(["apiToken"]);
    const agent = { client_type: "firmware", agent_id: "lamp" };
    expect(names({ session_token: "s", ...agent })).toEqual(["sessionToken", "agentId"]);
  });

  const requestId = "request_id must be a string of 1 to 64 characters";
  it.each<[object, string]>([
    [{ payload: PACKET }, "payload must be a string"],
    [{ payload: [JSON.stringify(PACKET)] }, "payload must be a string"],
    [{ signature: null }, "signature must be a string"],
    [{ agent_id: 7 }, "agent_id must be a string"],
    ...["", tooLong, 7, null, ["x"]].map((id): [object, string] => [{ request_id: id }, requestId]),
  ])("makes an envelope with %j invalid, and the relay says how", (fields, fault) => {
    const envelope = JSON.stringify({ type: "relay", payload: "hello", ...fields });
    expect(decodeForRelay(envelope)).toMatchObject({ sid: null, agentId: null, fault });
  });

  it("does not keep the relay from the sid of a packet", () => {
    const payload = `\r\n\t ${JSON.stringify(PACKET)}`;
    const envelope = { type: "relay", payload, request_id: tooLong };
    const message = { sid: "C.A", requestId: tooLong, fault: null };
    expect(decodeForRelay(JSON.stringify(envelope))).toMatchObject(message);
  });
});

describe("what an agent reads", () => {
  it("is a packet without being parsed, if it begins like one and can be nothing else", () => {
    const form = { enveloped: false, requestId: null };
    const reordered = '{"sid":"C.A","v":"1"}';
    for (const text of ['{"v":"1", what else', reordered]) {
      expect(decodeForAgent(text)).toEqual({ kind: "packet", text, form, signature: null });
    }
    for (const name of ["type", "\\u0074ype"]) {
      expect(decodeForAgent(`{"v":"1","${name}":"ping"}`)).toEqual({ kind: "ping" });
    }
  });

  it("is signed if the envelope's signature is a text, and unreadable if it is something else", () => {
    const read = (signature: unknown) =>
      decodeForAgent(JSON.stringify({ type: "relay", payload: "x", signature }));
    expect([read("s"), read(null)]).toMatchObject([{ signature: "s" }, { signature: null }]);
    expect(read(7)).toEqual(UNREADABLE);
  });
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
    [`aa${"😀".repeat(63)}`, null],
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
