/** Requests to REST as bytes, mostly nearly valid. */
import type { Random } from "./random.ts";

const PATHS = [
  "/api/v1/auth/config",
  "/api/v1/auth/login",
  "/api/v1/auth/session",
  "/api/v1/auth/totp/enroll",
  "/api/v1/account",
  "/api/v1/agents",
  "/api/v1/agents/ID",
  "/api/v1/agents/ID/export",
  "/api/v1/agents/ID/rotate-token",
  "/api/v1/releases",
  "/api/v1/releases/check",
  "/api/v1/releases/ID/artifact",
  "/api/v1/admin/users",
  "/api/v1/admin/users/ID",
  "/api/v1/admin/stats",
  "/api/v1/admin/audit",
  "/api/openapi.json",
  "/api/asyncapi.json",
  "/api/docs",
  "/api/redoc/page.js",
  "/health",
  "/wss",
  "/",
];
const METHODS = ["GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "X"];
const FIELDS = ["name", "agent_id", "metadata", "username", "password", "totp_code", "role"];
const TEXTS = ["", "x", "a".repeat(300), "ü\u0000\ud800", "../..", "%00", "' or 1=1 --", "{{7*7}}"];

const body = (random: Random): string => {
  const text = (): unknown =>
    random.pick<unknown>([
      ...TEXTS,
      null,
      1,
      true,
      [],
      {},
      { __proto__: 1 },
      random.below(2 ** 31),
    ]);
  const fields = Array.from({ length: random.below(5) }, () => [random.pick(FIELDS), text()]);
  const json = JSON.stringify(Object.fromEntries(fields));
  if (random.chance(10)) return "[".repeat(random.length());
  return random.chance(20) ? random.mutate(Buffer.from(json)).toString("latin1") : json;
};

/**
 * One request; `tokens` may be used in its Authorization. It never changes the account that it
 * uses.
 */
export const request = (
  random: Random,
  tokens: readonly string[],
  agentIds: readonly string[],
): Buffer => {
  const id = encodeURIComponent(random.pick([...agentIds, ...TEXTS]).toWellFormed());
  const query = random.chance(30)
    ? `?${random.pick(["limit", "cursor", "online", "name", "channel", "version", "format"])}=${encodeURIComponent(random.pick([...TEXTS, "true", "1", "1.0.0"]).toWellFormed())}`
    : "";
  const path = random.pick(PATHS).replace("ID", id) + query;
  const content = body(random);
  const lines = [
    `${random.pick(METHODS)} ${path} HTTP/1.1`,
    `Host: ${random.pick(["x", "localhost:8080", "x:99999", "a b", "[::1]", ""])}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(content)}`,
  ];
  if (random.chance(80)) lines.push(`Authorization: Bearer ${random.pick(tokens)}`);
  if (random.chance(10)) lines.push(`Idempotency-Key: ${random.pick(TEXTS.slice(0, 3))}`);
  if (random.chance(10)) lines.push(`Range: bytes=${random.below(9)}-${random.below(9)}`);
  if (random.chance(5)) lines.push("Host: y");
  if (random.chance(5)) lines.push(`X-Forwarded-For: ${random.pick(TEXTS)}`);
  const bytes = Buffer.from(`${lines.join("\r\n")}\r\n\r\n${content}`, "latin1");
  return random.chance(15) ? random.mutate(bytes) : bytes;
};
