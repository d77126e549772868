/**
 * Passwords as argon2id in PHC format (RFC 9106), with OWASP's parameters for servers: 19 MiB,
 * two passes. Each hash contains its parameters, so they can be raised without a migration.
 */
import { type Argon2Parameters, argon2, randomBytes, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import { lowerPoolPriority } from "./pool-priority.ts";

/** The cost of one hash, for the relay and for an attacker. */
interface HashCost {
  readonly memoryKib: number;
  readonly passes: number;
}

const SERVER_COST: HashCost = { memoryKib: 19456, passes: 2 };
const PARALLELISM = 1;
const SALT_BYTES = 16;
const TAG_BYTES = 32;

const argon2id = promisify(
  (parameters: Argon2Parameters, done: (error: Error | null, tag: Buffer) => void) => {
    argon2("argon2id", parameters, done);
    lowerPoolPriority();
  },
);

/**
 * The same text, whatever keyboard it comes from: an umlaut typed on a Mac may be two characters
 * (RFC 8265).
 */
export const normalPassword = (password: string): string => password.normalize("NFC");

/** The hash to store for a password. Computed off the main thread. */
export const hashPassword = async (given: string, cost = SERVER_COST): Promise<string> => {
  const password = normalPassword(given);
  const salt = randomBytes(SALT_BYTES);
  const tag = await argon2id({
    message: Buffer.from(password, "utf8"),
    nonce: salt,
    memory: cost.memoryKib,
    passes: cost.passes,
    parallelism: PARALLELISM,
    tagLength: TAG_BYTES,
  });
  return phc(cost, base64(salt), base64(tag));
};

const PHC = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

/**
 * Whether a password matches a hash: `as typed` if only its own form does, because the hash was
 * made before passwords were normalised. Throws if the hash is not in our format.
 */
export const verifyPassword = async (
  password: string,
  hash: string,
): Promise<"right" | "as typed" | "wrong"> => {
  const normal = normalPassword(password);
  if (await matches(normal, hash)) return "right";
  return password !== normal && (await matches(password, hash)) ? "as typed" : "wrong";
};

const matches = async (password: string, hash: string): Promise<boolean> => {
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

const phc = ({ memoryKib, passes }: HashCost, salt: string, tag: string): string =>
  `$argon2id$v=19$m=${memoryKib},t=${passes},p=${PARALLELISM}$${salt}$${tag}`;

/** A hash that no password matches. */
export const dummyHash = (cost: HashCost): string => phc(cost, "A".repeat(22), "A".repeat(43));

/**
 * Verified for an unknown user name, so that the answer takes as long as for a wrong password and
 * does not reveal which accounts exist.
 */
export const DUMMY_HASH = dummyHash(SERVER_COST);

const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes)
    .toString("base64")
    .replace(/(?<!=)=+$/, "");
