/** Upgrades, heads and bodies that no honest client sends, and what the relay must answer. */
import { UPGRADE } from "../raw-socket.ts";

export interface Odd {
  readonly bytes: string;
  /** What the answer matches. */
  readonly answer: RegExp;
}

/** Of what is ended at once. */
export const REFUSED = /^HTTP\/1\.1 400 /;
const ACCEPTED = /^HTTP\/1\.1 101 /;
/** Anything but a fault of the relay or a link. */
const NO_FAULT = /^HTTP\/1\.1 (?:[23]\d\d|4\d\d|100) |^$/;

/** Headers that announce a body, well-formed or not. */
export const FRAMINGS = [
  "Content-Length: 1",
  "Content-Length: 01",
  "Content-Length: 5",
  "Content-Length: 99999999",
  "content-length:1",
  "Content-Length: 1, 1",
  "Content-Length: 0, 1",
  "Content-Length: 1\r\nContent-Length: 1",
  "Content-Length: 0\r\nContent-Length: 1",
  "Content-Length: +1",
  "Content-Length: -1",
  "Content-Length: 0x1",
  "Content-Length: 1e1",
  "Content-Length: 1 1",
  "Content-Length: 99999999999999999999",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: CHUNKED",
  "Transfer-Encoding: gzip, chunked",
  "Transfer-Encoding: identity",
  "Transfer-Encoding: chunked, gzip",
  "Transfer-Encoding: chunked\r\nContent-Length: 3",
  "Content-Length: 3\r\nTransfer-Encoding: chunked",
  "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
] as const;
const EXPECTATIONS = ["", "Expect: 100-continue", "Expect: a-miracle"] as const;
/** What follows the head at once. */
const BODIES = ["", "x", "hello and more", "5\r\nhello\r\n0\r\n\r\n", "5\r\nhe"] as const;

const lines = (...some: readonly string[]): string =>
  some.map((line) => (line === "" ? "" : `${line}\r\n`)).join("");

const withBody = FRAMINGS.flatMap((framing) =>
  EXPECTATIONS.flatMap((expectation) =>
    BODIES.map((body) => ({
      bytes: `${UPGRADE}${lines(framing, expectation)}\r\n${body}`,
      answer: REFUSED,
    })),
  ),
);

const accepted = ["", "Content-Length: 0", "Content-Length: 000", "X: y"].map((line) => ({
  bytes: `${UPGRADE}${lines(line)}\r\n`,
  answer: ACCEPTED,
}));

const changed = (from: string | RegExp, to: string, answer: RegExp): Odd => ({
  bytes: `${UPGRADE.replace(from, to)}\r\n`,
  answer,
});

const upgrades = [
  changed("HTTP/1.1", "HTTP/1.0", REFUSED),
  changed("HTTP/1.1", "HTTP/0.9", REFUSED),
  changed("HTTP/1.1", "HTTP/2.0", REFUSED),
  changed("GET", "POST", /^HTTP\/1\.1 405 /),
  changed("GET", "CONNECT", NO_FAULT),
  changed("GET", "get", REFUSED),
  changed("Host: x\r\n", "", REFUSED),
  changed("Host: x", "Host: x\r\nHost: y", REFUSED),
  changed("Version: 13", "Version: 8", /^HTTP\/1\.1 426 /),
  changed("Version: 13", "Version: 13, 8", /^HTTP\/1\.1 426 /),
  changed("==", "", REFUSED),
  changed(/Sec-WebSocket-Key.*\r\n/, "", REFUSED),
  changed("/wss", "/wss/", NO_FAULT),
  changed("/wss", "/nothing", NO_FAULT),
  changed("/wss", "http://x/wss", ACCEPTED),
  changed("/wss", "*", NO_FAULT),
  changed("/wss", "/%", NO_FAULT),
  changed("/wss", "//wss", NO_FAULT),
  changed("websocket", "h2c", /^HTTP\/1\.1 426 /),
  changed("websocket", "websocket, h2c", /^HTTP\/1\.1 426 /),
  changed("Connection: Upgrade", "Connection: close", NO_FAULT),
  changed("Upgrade: websocket\r\n", "Upgrade: websocket\r\nUpgrade: websocket\r\n", NO_FAULT),
  changed("Key:", "Key :", REFUSED),
];

const CONFIG = "GET /api/v1/auth/config HTTP/1.1\r\nHost: x\r\n";

/** One and more requests before an upgrade: its answer would end up in the WebSocket. */
const pipelined = [1, 2, 5].map((count) => ({
  bytes: `${`${CONFIG}\r\n`.repeat(count)}${UPGRADE}\r\n`,
  answer: new RegExp(
    `^(?:HTTP/1\\.1 200 [\\s\\S]*?){${count}}HTTP/1\\.1 400 (?![\\s\\S]*HTTP/1\\.1 101)`,
  ),
}));

const HEADS = [
  "",
  "\r\n",
  "\n\n\n",
  "\0",
  "GET",
  "GET /health",
  "GET /health HTTP/1.1\r\nHost: x",
  "GET /health HTTP/1.1\nHost: x\n\n",
  "GET /health HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n",
  "GET /health HTTP/1.1\r\nHost: x\r\nX: \0\r\n\r\n",
  "GET /health HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n",
  "GET /health HTTP/1.1\r\nHost: x\r\nX Y: z\r\n\r\n",
  "GET  /health  HTTP/1.1\r\n\r\n",
  "GET /health HTTP/9.9\r\nHost: x\r\n\r\n",
  "GET /health\r\n\r\n",
  "GET /\u00ff\u0000 HTTP/1.1\r\nHost: x\r\n\r\n",
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  "SSH-2.0-OpenSSH_9.2\r\n",
  "\u0016\u0003\u0001\u0000\u00f8\u0001\u0000\u0000",
  `GET /${"a".repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
  `GET /health HTTP/1.1\r\nHost: x\r\nX: ${"a".repeat(20_000)}\r\n\r\n`,
  `GET /health HTTP/1.1\r\nHost: x\r\n${"X: y\r\n".repeat(3000)}\r\n`,
  `${CONFIG}Connection: close\r\n\r\ngarbage after the last request`,
  `${CONFIG}\r\n`.repeat(30),
  `${CONFIG}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n`,
  `${CONFIG}Expect: a-miracle\r\n\r\n`,
];

const POST = "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
const bodies = FRAMINGS.flatMap((framing) =>
  ["", '{"', "5\r\nhello\r\n0\r\n\r\n", "zz\r\n"].map((body) => `${POST}${framing}\r\n\r\n${body}`),
);

export const ODD: readonly Odd[] = [
  ...withBody,
  ...accepted,
  ...upgrades,
  ...pipelined,
  ...[...HEADS, ...bodies].map((bytes) => ({ bytes, answer: NO_FAULT })),
];
