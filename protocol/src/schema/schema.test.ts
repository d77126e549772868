/**
 * Every message: the README's examples are accepted, and examples with a broken part are refused.
 */
import { readFileSync } from "node:fs";
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { Check } from "typebox/value";
import { describe, expect, it } from "vitest";
import { ERRORS } from "../errors.ts";
import {
  AgentStatus,
  Auth,
  AuthFailure,
  AuthResponse,
  AuthSuccess,
  ErrorMessage,
  PacketMessage,
  Ping,
  Pong,
  RelayEnvelope,
} from "./index.ts";

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
/** The fenced examples after a line `<!-- example: Name -->`, one message per line. */
const examples = (name: string): { [key: string]: unknown }[] => {
  const found = [...readme.matchAll(/<!-- example: (\w+) -->\n```json\n([\s\S]*?)```/g)];
  return found
    .filter(([, which]) => which === name)
    .flatMap(([, , text]) => (text as string).trim().split("\n"))
    .map((line) => JSON.parse(line) as { [key: string]: unknown });
};

const schemas: [string, TSchema][] = [
  ["Auth", Auth],
  ["AuthSuccess", AuthSuccess],
  ["AuthFailure", AuthFailure],
  ["RelayEnvelope", RelayEnvelope],
  ["Packet", PacketMessage],
  ["AgentStatus", AgentStatus],
  ["Ping", Ping],
  ["Pong", Pong],
  ["Error", ErrorMessage],
];

/** The fields without which a message is a different one or invalid. */
const required = (schema: TSchema): string[] => (schema as { required?: string[] }).required ?? [];

describe.each(schemas)("%s", (name, schema) => {
  const compiled = Compile(schema);

  it("accepts the README's examples", () => {
    expect(examples(name).length).toBeGreaterThan(0);
    for (const example of examples(name)) {
      expect(compiled.Check(example), JSON.stringify(example)).toBe(true);
      expect(Check(schema, example)).toBe(true);
    }
  });

  it("ignores fields it does not know", () => {
    for (const example of examples(name)) {
      expect(compiled.Check({ ...example, a_later_field: { x: 1 } })).toBe(true);
    }
  });

  it("refuses a message without a required field, or with a field of another type", () => {
    for (const example of examples(name)) {
      for (const field of required(schema)) {
        const { [field]: _gone, ...rest } = example;
        expect(compiled.Check(rest), `${name} without ${field}`).toBe(false);
      }
      for (const field of Object.keys(example)) {
        for (const wrong of [null, [], {}, typeof example[field] === "string" ? 1 : "1"]) {
          const touched = { ...example, [field]: wrong };
          expect(compiled.Check(touched), `${name} with ${field} ${JSON.stringify(wrong)}`).toBe(
            false,
          );
        }
      }
    }
  });

  it("refuses anything but an object", () => {
    for (const other of [null, undefined, "x", 1, true, [], [examples(name)[0]]]) {
      expect(compiled.Check(other)).toBe(false);
    }
  });
});

describe("bounds", () => {
  const auth = { type: "auth", api_token: "agt_x", client_type: "agent", agent_id: "lamp-1" };
  const relay = { type: "relay", payload: "{}", agent_id: "lamp-1" };
  const packet = { v: "1", sid: "x", seq: 0, p: "" };

  it.each([
    ["agent_id of 64", true, Auth, { ...auth, agent_id: "x".repeat(64) }],
    ["agent_id of 65", false, Auth, { ...auth, agent_id: "x".repeat(65) }],
    ["no agent_id characters", false, Auth, { ...auth, agent_id: "" }],
    ["agent_id with a line end", false, Auth, { ...auth, agent_id: "lamp-1\n" }],
    ["agent_id with a dot", false, Auth, { ...auth, agent_id: "lamp.1" }],
    ["agent_id above ASCII", false, Auth, { ...auth, agent_id: "lämp" }],
    ["another client_type", false, Auth, { ...auth, client_type: "Agent" }],
    ["a long token", false, Auth, { ...auth, api_token: "x".repeat(257) }],
    ["request_id of 1", true, RelayEnvelope, { ...relay, request_id: "x" }],
    ["request_id of 64", true, RelayEnvelope, { ...relay, request_id: "x".repeat(64) }],
    ["request_id of 65", false, RelayEnvelope, { ...relay, request_id: "x".repeat(65) }],
    ["an empty request_id", false, RelayEnvelope, { ...relay, request_id: "" }],
    ["an agent's envelope without agent_id", true, RelayEnvelope, { type: "relay", payload: "{}" }],
    ["a payload that is no packet", true, RelayEnvelope, { ...relay, payload: "hello" }],
    ["the largest seq", true, PacketMessage, { ...packet, seq: 4294967295 }],
    ["one more", false, PacketMessage, { ...packet, seq: 4294967296 }],
    ["a negative seq", false, PacketMessage, { ...packet, seq: -1 }],
    ["half a seq", false, PacketMessage, { ...packet, seq: 0.5 }],
    ["presence as a word", false, Auth, { ...auth, presence: "yes" }],
    [
      "another status",
      false,
      AgentStatus,
      {
        type: "agent_status",
        agent_id: "a",
        status: "away",
        timestamp: "2026-11-21T09:00:00.000Z",
      },
    ],
    [
      "no date",
      false,
      AgentStatus,
      { type: "agent_status", agent_id: "a", online: true, timestamp: "yesterday" },
    ],
    ["an unknown code", false, ErrorMessage, { type: "error", error: "x", code: "NOPE" }],
    ["an inherited code", false, ErrorMessage, { type: "error", error: "x", code: "toString" }],
  ] as [string, boolean, TSchema, unknown][])("%s: %s", (_what, good, schema, message) => {
    expect(Compile(schema).Check(message)).toBe(good);
  });
});

it("an error message can have every code of the table", () => {
  for (const code of Object.keys(ERRORS)) {
    expect(Check(ErrorMessage, { type: "error", error: "x", code })).toBe(true);
  }
});

it("an auth_response is a success or a failure and never a mixture", () => {
  for (const example of [...examples("AuthSuccess"), ...examples("AuthFailure")]) {
    expect(Check(AuthResponse, example)).toBe(true);
    const other = example.status === "authenticated" ? "failed" : "authenticated";
    expect(Check(AuthResponse, { ...example, status: other })).toBe(false);
  }
});
