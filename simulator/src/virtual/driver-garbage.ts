/** Messages that are refused: each is answered, with its reason. */
import type { RawWorld } from "./driver-raw.ts";

/** The relay's limit is 64 KiB. */
const TOO_LONG = 70_000;
/** The relay waits 30 s for a login. */
const LOGIN_MS = 45_000;

/** What locks an address out, and how long the relay's nodes take to tell each other. */
const FAILURES = 5;
const NEWS_MS = 2_000;
/** Since the lockout began, when the other messages have been refused: it lasts ten minutes. */
const LATER_MS = 40_000;

export const garbage = async (raw: RawWorld): Promise<void> => {
  const address = raw.anotherAddress();
  const lockedOut = await failToLogin(raw, address);
  if (lockedOut) await judgeLogin(raw, address, "");
  await sendGarbage(raw);
  if (lockedOut && raw.isQuiet) {
    await raw.sleep(LATER_MS);
    await judgeLogin(raw, address, " a minute later");
  }
};

/** Whether so many guesses were refused from an address of their own. */
const failToLogin = async (raw: RawWorld, address: string): Promise<boolean> => {
  for (let n = 0; n < FAILURES; n++) {
    const peer = await raw.connect(false, address);
    if (peer === null) return false;
    const guess = { type: "auth", api_token: "a guess", client_type: "client" };
    const answer = await peer.ask(guess, ({ type }) => type === "auth_response");
    peer.close();
    if (!raw.isQuiet || answer === null) return false;
    if (answer.code !== "INVALID_TOKEN") {
      raw.untold(`guess ${n + 1} of a token got ${answer.code ?? answer.status}`);
      return false;
    }
  }
  await raw.sleep(NEWS_MS);
  return raw.isQuiet;
};

/** The right token does not help whoever is locked out. */
const judgeLogin = async (raw: RawWorld, address: string, when: string): Promise<void> => {
  const peer = await raw.connect(false, address);
  const answer = await peer?.ask(raw.login(), ({ type }) => type === "auth_response");
  if (!raw.isQuiet || answer == null || answer.code === "LOCKED_OUT") return;
  raw.untold(`after ${FAILURES} guesses of a token, a login${when} got ${answer.code ?? "in"}`);
};

const sendGarbage = async (raw: RawWorld): Promise<void> => {
  const silent = await raw.connect();
  const peer = (await raw.client())?.peer;
  if (silent === null || peer === undefined || !raw.isQuiet) return;
  const fresh = await raw.connect();
  if (fresh === null) return;
  const cases: readonly [RawPeerOf, string, string, string][] = [
    [fresh, "a request before the login", raw.envelope("a.x", 1), "AUTH_REQUIRED"],
    [peer, "an unknown type", '{"type":"nonsense"}', "UNKNOWN_TYPE"],
    [
      peer,
      "a second login",
      '{"type":"auth","api_token":"x","client_type":"client"}',
      "BAD_MESSAGE",
    ],
    [peer, "no JSON", "{{{", "BAD_MESSAGE"],
    [
      peer,
      "a packet of no session",
      '{"v":"1","sid":"zz.x","seq":1,"p":"AAAA"}',
      "UNKNOWN_SESSION",
    ],
    [peer, "too many bytes", `{"type":"relay","x":"${"x".repeat(TOO_LONG)}"}`, "TOO_LARGE"],
    [peer, "an agent of nobody", raw.envelope("b.x", 1, "AAAA", "nobody"), "AGENT_NOT_FOUND"],
  ];
  for (const [from, what, text, code] of cases) {
    const answer = await from.ask(text, (told) => told.type === "error");
    if (!raw.isQuiet || from.isOver) return;
    if (answer === null) raw.untold(`${what} got no answer`);
    else if (answer.code !== code) raw.untold(`${what} got ${answer.code}, not ${code}`);
  }
  const pong = await peer.ask('{"type":"ping"}', ({ type }) => type === "pong");
  if (pong === null && raw.isQuiet && !peer.isOver) raw.untold("a ping got no answer");
  const isEnded = await silent.until(() => silent.isOver, LOGIN_MS);
  if (!isEnded && raw.isQuiet) raw.untold("a connection without a login was left open");
};

type RawPeerOf = NonNullable<Awaited<ReturnType<RawWorld["connect"]>>>;
