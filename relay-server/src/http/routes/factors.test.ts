/**
 * Two requests about one account's password and second factor at once: what was checked before the
 * other one's change is not acted upon after it, or who has the old password undoes the new one.
 */
import { afterEach, expect, it, vi } from "vitest";
import { Overloaded } from "../../control/hash-queue.ts";
import { type Rest, startRest } from "../testing/test-rest.ts";

let rest: Rest;
afterEach(() => rest.close());

type Ask = (by: string, code: string) => ReturnType<Rest["call"]>;
const patch =
  (change: object): Ask =>
  (token, totp_code) =>
    rest.call("PATCH", "/account", {
      token,
      body: { current_password: "correct horse", totp_code, ...change },
    });
const enroll: Ask = (token, totp_code) =>
  rest.call("POST", "/auth/totp/enroll", {
    token,
    body: { current_password: "correct horse", totp_code },
  });
let drawn = "";
const confirm: Ask = (token) =>
  rest.call("POST", "/auth/totp/confirm", { token, body: { totp_code: rest.code(drawn) } });

const PASSWORD = patch({ password: "the owner's horse" });
const NO_CODE = patch({ totp_enabled: false });

it.each<readonly [string, string, Ask, Ask, boolean]>([
  ["a password", "another password", patch({ password: "a thief's horse" }), PASSWORD, false],
  [
    "a password",
    "another one, with codes,",
    patch({ password: "a thief's horse" }),
    PASSWORD,
    true,
  ],
  ["a password", "the end of codes", patch({ password: "a thief's horse" }), NO_CODE, true],
  ["a first enrolment", "the confirmation of another", enroll, confirm, false],
  ["a first enrolment", "a password", enroll, PASSWORD, false],
  ["another enrolment", "a password", enroll, PASSWORD, true],
  ["a confirmation", "a password", confirm, PASSWORD, false],
  ["the end of codes", "a password", NO_CODE, PASSWORD, true],
])(
  "%s that was under way before %s changes nothing after it",
  async (_what, _other, late, first, hasCodes) => {
    rest = await startRest({ totp: hasCodes });
    Object.assign(rest.context, { totpRequired: false });
    const { store } = rest.context;
    const logIn = async (): Promise<string> => {
      rest.clock.nowMs += 30_000;
      return (await rest.login(hasCodes ? { totp_code: rest.code() } : {})).access_token;
    };
    const [owner, thief] = [await logIn(), await logIn()];
    if (!hasCodes) drawn = (await enroll(owner, "")).json().secret;
    const user = () => store.db.selectFrom("users").selectAll().executeTakeFirstOrThrow();

    // The thief's last write waits; a code that is used is one before it.
    let writes = hasCodes ? 2 : 1;
    const write = store.write.bind(store);
    let go: () => void = () => undefined;
    const went = new Promise<void>((resolve) => {
      go = resolve;
    });
    let isAsked: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => {
      isAsked = resolve;
    });
    const writeLate = async (work: Parameters<typeof write>[0]) => {
      writes -= 1;
      if (writes === 0) {
        isAsked();
        await went;
      }
      return write(work);
    };
    Object.assign(store, { write: writeLate });
    rest.clock.nowMs += 30_000;
    const under = late(thief, hasCodes ? rest.code() : "");
    await asked;
    rest.clock.nowMs += 30_000;
    expect((await first(owner, hasCodes ? rest.code() : "")).statusCode).toBe(200);
    const after = await user();
    go();
    expect([409, 401]).toContain((await under).statusCode);
    expect(await user()).toEqual(after);
  },
);

it("a new password and the end of codes are one change: if one fails, so does the other", async () => {
  rest = await startRest({ totp: true });
  Object.assign(rest.context, { totpRequired: false });
  rest.clock.nowMs += 30_000;
  const token = (await rest.login({ totp_code: rest.code() })).access_token;
  const both = patch({ password: "another horse", totp_enabled: false });
  const { hashing } = rest.context;
  // The old password is still checked, and there is no room to hash the new one.
  let hashes = 1;
  const run = hashing.run.bind(hashing);
  const hash = vi.spyOn(hashing, "run").mockImplementation((...asked) => {
    hashes -= 1;
    return hashes < 0 ? Promise.reject(new Overloaded()) : run(...asked);
  });
  rest.clock.nowMs += 30_000;
  expect((await both(token, rest.code())).statusCode).toBe(503);
  const user = async () => (await rest.call("GET", "/account", { token })).json();
  expect(await user()).toMatchObject({ totp_enabled: true });
  hash.mockRestore();
  rest.clock.nowMs += 30_000;
  expect((await both(token, rest.code())).statusCode).toBe(200);
  expect(await user()).toMatchObject({ totp_enabled: false });
  expect(await rest.login({ password: "another horse" })).toMatchObject({
    access_token: expect.any(String),
  });
});
