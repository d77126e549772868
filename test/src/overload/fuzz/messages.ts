/** What a peer of `/wss` may send, mostly nearly valid: the deeper it gets, the more it finds. */
import { frame } from "../raw-socket.ts";
import type { Random } from "./random.ts";

const NAMES = ["type", "agent_id", "payload", "request_id", "sid", "seq", "v", "p", "__proto__"];
const TYPES = ["auth", "relay", "ping", "pong", "error", "agent_status", "", "constructor"];

const value = (random: Random, depth = 0): unknown => {
  const kind = random.below(depth > 3 ? 7 : 9);
  if (kind === 0) return null;
  if (kind === 1) return random.chance(50);
  if (kind === 2) return random.below(2 ** 31) - 2 ** 30;
  if (kind === 3) return random.pick([-0, 1.5, 1e308, 2 ** 53, -(2 ** 53)]);
  if (kind < 7) return text(random);
  const count = random.below(4);
  if (kind === 7) return Array.from({ length: count }, () => value(random, depth + 1));
  return Object.fromEntries(
    Array.from({ length: count }, () => [random.pick(NAMES), value(random, depth + 1)]),
  );
};

const text = (random: Random): string =>
  random.pick([
    "",
    "x",
    "C.A",
    "ü \u2028 \ud800",
    ".".repeat(70),
    "A".repeat(22),
    "\u0000",
    random.bytes(random.below(40)).toString("latin1"),
  ]);

/** A message as JSON, addressed to the agents `agentIds`. */
export const message = (random: Random, agentIds: readonly string[]): string => {
  const sid = `${random.pick(["C", "D", text(random)])}${random.pick(["", ".A", "."])}`;
  const packet = { v: "1", sid, seq: random.below(5), p: random.pick(["AAAA", text(random)]) };
  const agent_id = random.pick([...agentIds, text(random)]);
  const fields = random.pick<object>([
    packet,
    { type: "relay", agent_id, payload: JSON.stringify(packet) },
    { type: "relay", agent_id, payload: text(random), request_id: text(random) },
    { type: random.pick(TYPES), [random.pick(NAMES)]: value(random) },
    { type: "auth", client_type: "client", api_token: text(random) },
    { type: "ping" },
  ]);
  const changed = random.chance(40) ? { ...fields, [random.pick(NAMES)]: value(random) } : fields;
  const json = random.chance(5) ? "[".repeat(random.length()) : JSON.stringify(changed);
  return random.chance(20) ? random.mutate(Buffer.from(json)).toString("latin1") : json;
};

/** One or more frames, valid or not, as the bytes of a stream. */
export const frames = (random: Random, agentIds: readonly string[]): Buffer => {
  const payload = Buffer.from(message(random, agentIds));
  const kind = random.below(10);
  if (kind < 4) return frame(1, payload);
  if (kind === 4) return fragments(random, payload);
  if (kind === 5) return frame(random.pick([8, 9, 10]), random.bytes(random.below(130)));
  if (kind === 6) return frame(1, Buffer.alloc(random.length(), "x"));
  if (kind === 7) return frame(random.below(16), payload, { fin: random.chance(50) });
  if (kind === 8) return random.mutate(frame(1, payload)); // the header too
  return random.bytes(random.below(300));
};

const fragments = (random: Random, payload: Buffer): Buffer => {
  const count = random.pick([2, 3, 10, 63, 64, 65, 200]);
  const size = Math.ceil(payload.length / count);
  const pieces: Buffer[] = [];
  for (let i = 0; i < count; i++) {
    const piece = payload.subarray(i * size, (i + 1) * size);
    pieces.push(frame(i === 0 ? 1 : 0, piece, { fin: i === count - 1 && random.chance(90) }));
    if (random.chance(10)) pieces.push(frame(random.pick([9, 10]), "x"));
  }
  return Buffer.concat(pieces);
};
