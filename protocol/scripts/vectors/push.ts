/** Proofs by a push key. */
import { createHash, createHmac } from "node:crypto";
import { base64url, filler, fromHex, token } from "./reference.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const mac = (key: string, text: string): string =>
  base64url(createHmac("sha256", Buffer.from(key)).update(text, "ascii").digest());

const GIVEN = {
  push_key: token(
    "push_",
    fromHex("606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f"),
  ),
  agent_id: "lamp-1",
  serial: 5,
  program: "export default (agent) => { agent.handle('x', () => 1); };\n",
};
/** The secret of the given rekey. */
const SECRET = token(
  "e2e_",
  fromHex("404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f"),
);

const push = (comment: string, change: Partial<typeof GIVEN> = {}) => {
  const { push_key, agent_id, serial, program } = { ...GIVEN, ...change };
  const size = Buffer.byteLength(program);
  const hash = sha256(program);
  const proof = mac(push_key, `push|${agent_id}|${serial}|${size}|${hash}`);
  return { comment, push_key, agent_id, serial, size, sha256: hash, proof };
};

const rekey = (comment: string, change: Partial<typeof GIVEN> = {}, secret = SECRET) => {
  const { push_key, agent_id, serial } = { ...GIVEN, serial: 6, ...change };
  const hash = sha256(secret);
  const proof = mac(push_key, `rekey|${agent_id}|${serial}|${hash}`);
  return { comment, push_key, agent_id, serial, sha256: hash, proof };
};

const OTHER_KEY = token("push_", filler("push key", 32));

export const pushFile = {
  comment:
    "What a push key adds to a push's first call and to system.rekey. size, and with it sha256 of a program: a push; without: sha256 of a new agent_token",
  source: "protocol/README.md, section 2, The push key",
  valid: [
    push("a program"),
    push("another serial", { serial: 6 }),
    push("the largest serial", { serial: Number.MAX_SAFE_INTEGER }),
    push("a serial of more than 32 bits", { serial: 2 ** 32 }),
    push("another device", { agent_id: "lamp-11" }),
    push("the longest agent_id", { agent_id: "Az09_-78".repeat(8) }),
    push("another program", { program: "x" }),
    push("a program of 100,000 bytes", { program: "0123456789".repeat(10_000) }),
    push("another key", { push_key: OTHER_KEY }),
    rekey("a new secret"),
    rekey("the same by another key", { push_key: OTHER_KEY }),
    rekey("another secret", {}, token("e2e_", filler("rekey", 32))),
  ],
  invalid: [],
};
