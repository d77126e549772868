/**
 * Passwords as argon2id in PHC format (RFC 9106), with OWASP's parameters for servers: 19 MiB,
 * two passes. Parameters stand in each hash, so they can be raised without a migration.
 */
import { type Argon2Parameters, argon2, randomBytes, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";

const MEMORY_KIB = 19456;
const PASSES = 2;
const PARALLELISM = 1;
const SALT_BYTES = 16;
const TAG_BYTES = 32;

const argon2id = promisify(
  (parameters: Argon2Parameters, done: (error: Error | null, tag: Buffer) => void) =>
    argon2("argon2id", parameters, done),
);

/** The hash to keep of a password. Off the main thread. */
export const hashPassword = async (password: string): Promise<string> => {
  const salt = randomBytes(SALT_BYTES);
  const tag = await argon2id({
    message: Buffer.from(password, "utf8"),
    nonce: salt,
    memory: MEMORY_KIB,
    passes: PASSES,
    parallelism: PARALLELISM,
    tagLength: TAG_BYTES,
  });
  return `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=${PARALLELISM}$${base64(salt)}$${base64(tag)}`;
};

const PHC = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

/** Whether a password is the one behind a hash. Throws where the hash is none of ours. */
export const verifyPassword = async (password: string, hash: string): Promise<boolean> => {
  const parts = PHC.exec(hash);
  if (parts === null) throw new Error("the store holds a password hash of an unknown form");
  const [, memory, passes, parallelism, salt, tag] = parts as unknown as string[];
  const expected = Buffer.from(tag as string, "base64");
  const given = await argon2id({
    message: Buffer.from(password, "utf8"),
    nonce: Buffer.from(salt as string, "base64"),
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    tagLength: expected.length,
  });
  return timingSafeEqual(given, expected);
};

/**
 * A hash that no password has, to be verified where a user name is unknown: the answer then takes
 * as long as for a wrong password and does not tell who has an account.
 */
export const DUMMY_HASH = `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=${PARALLELISM}$${"A".repeat(22)}$${"A".repeat(43)}`;

const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes).toString("base64").replace(/=+$/, "");
