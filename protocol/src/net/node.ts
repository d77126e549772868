/**
 * What both SDKs share on Node: HTTP requests and WebSockets that take the same way to a relay, and
 * fail with the same words. The class of the package `ws` is passed in: protocol does not load it.
 */
import http, { type ClientRequest, type IncomingMessage } from "node:http";
import https from "node:https";
import { Readable } from "node:stream";
import type { Link, LinkEvents, LinkPort } from "../ports.ts";
import { MAX_FRAGMENTS, MAX_MESSAGE_BYTES, OUTBOX_BYTES } from "../spec.ts";
import { PONG_TEXT } from "../wire/ping.ts";
import type { HttpPort } from "./http.ts";
import { ADDRESS_TIMEOUT, agentFor, type ProxySetting } from "./proxy.ts";
import { reasonOfAnswer, reasonOfError } from "./reasons.ts";

export { ADDRESS_TIMEOUT, openTunnel, type Proxy, type ProxySetting, proxyFor } from "./proxy.ts";

/** One way for all requests of its user. */
export const nodeHttp = (proxy: ProxySetting): HttpPort => {
  const agents = new Map<string, ReturnType<typeof agentFor>>();
  const ask: HttpPort = (given) => {
    const { url, method, headers, body = null, signal } = given;
    const { origin, protocol } = new URL(url);
    // A relay names few: its own, and that of its artifacts.
    if (!agents.has(origin)) agents.set(origin, agentFor(new URL(url), proxy));
    const agent = agents.get(origin);
    // By the module's property, which instruments and tests replace.
    const { request: send } = protocol === "https:" ? https : http;
    return new Promise((resolve, reject) => {
      let isAnswered = false;
      const way = agent === undefined ? ADDRESS_TIMEOUT : { agent, ended: signal };
      const options = { method, headers, signal, ...way };
      const request = send(url, options, (response) => {
        isAnswered = true;
        resolve({
          status: response.statusCode ?? 0,
          header: (name) => [response.headers[name]].flat()[0] ?? null,
          chunks: response,
        });
      });
      request.on("error", (error) => {
        // The server may have closed a kept connection just then. Only what changes nothing is
        // asked again; of others it is unknown whether it was done.
        const isKept = method === "GET" && request.reusedSocket && !isAnswered;
        if (isKept && !signal.aborted) resolve(ask(given));
        else reject(error);
      });
      // After an upgrade that nobody asked for there is no error, and none by the signal either.
      request.on("close", () => reject(new Error("socket hang up")));
      if (body === null || typeof body === "string") request.end(body ?? undefined);
      else {
        const bytes = Readable.from("stream" in body ? body.stream() : body);
        bytes.on("error", (error) => request.destroy(error));
        request.on("close", () => bytes.destroy());
        bytes.pipe(request);
      }
    });
  };
  return ask;
};

/** As `ws` defines it. */
interface WsSocket {
  readonly readyState: number;
  readonly bufferedAmount: number;
  on(event: "open", fn: () => void): unknown;
  on(event: "message", fn: (data: Buffer, isBinary: boolean) => void): unknown;
  on(event: "error", fn: (error: Error) => void): unknown;
  on(event: "close", fn: (code: number, reason: Buffer) => void): unknown;
  on(
    event: "unexpected-response",
    fn: (request: ClientRequest, response: IncomingMessage) => void,
  ): unknown;
  send(text: string, done: () => void): void;
  close(code: number, reason: string): void;
  terminate(): void;
  pause(): void;
  resume(): void;
}
type WsClass = new (url: string, options: object) => WsSocket;

/** How long the relay may take for the closing handshake before the socket is terminated. */
const CLOSE_GRACE_MS = 2000;

const OPTIONS = {
  maxPayload: MAX_MESSAGE_BYTES,
  maxFragments: MAX_FRAGMENTS,
  /**
   * Pieces of one frame that ws keeps until it is complete; each costs more than its bytes. A
   * message of 64 KiB in the smallest segments that TCP must support (RFC 9293: 536 bytes) has 123.
   */
  maxBufferedChunks: 512,
  perMessageDeflate: false,
  followRedirects: false,
  ...ADDRESS_TIMEOUT,
  /** Everything is ASCII JSON, and the packet's own seal protects the rest. */
  skipUTF8Validation: true,
  /**
   * Also applies if ws closes by itself, after a message over the limit or a protocol error. The
   * core gives up a link on which no message is completed.
   */
  closeTimeout: CLOSE_GRACE_MS,
};

const CONNECTING = 0;
const OPEN = 1;
const CLOSED = 3;

export interface WebSocketLink extends Link {
  queuedBytes(): number;
  pause(): void;
  resume(): void;
}

/** A LinkPort with links that can be paused. */
export interface WebSocketLinks extends LinkPort {
  connect(url: string, events: LinkEvents): WebSocketLink;
}

/** A send that fails is followed by `close`, which tells the core. */
const ignoreLateError = (): void => undefined;

export const linksOver = (WebSocket: WsClass, proxy: ProxySetting): WebSocketLinks => ({
  connect: (url, events) => {
    const agent = agentFor(new URL(url), proxy);
    const ended = new AbortController();
    const socket = new WebSocket(url, { ...OPTIONS, agent, ended: ended.signal });
    // ws reports why it fails before it closes, and closes in any case.
    let failure = "";
    let isOpen = false;
    let grace: NodeJS.Timeout | undefined;
    const fail = (why: string) => {
      failure ||= why;
    };
    socket.on("open", () => {
      isOpen = true;
      events.opened();
    });
    socket.on("message", (data, isBinary) => {
      if (!isBinary && socket.readyState === OPEN) events.received(data.toString());
    });
    socket.on("unexpected-response", (_request, { statusCode = 0, headers }) => {
      fail(reasonOfAnswer(statusCode, headers["content-type"], headers.location).text);
      socket.terminate();
    });
    socket.on("error", (error) => fail(isOpen ? error.message : reasonOfError(error).text));
    socket.on("close", (code, reason) => {
      clearTimeout(grace);
      ended.abort();
      agent?.destroy();
      events.closed(code, reason.toString() || failure);
    });
    return {
      send: (text) => {
        // A relay that pings without reading needs no more pongs.
        if (text === PONG_TEXT && socket.bufferedAmount > OUTBOX_BYTES) return;
        if (socket.readyState === OPEN) socket.send(text, ignoreLateError);
      },
      close: (code, reason) => {
        if (socket.readyState === CLOSED || grace !== undefined) return;
        if (socket.readyState === CONNECTING) {
          socket.terminate();
          return;
        }
        grace = setTimeout(() => socket.terminate(), CLOSE_GRACE_MS);
        grace.unref();
        socket.close(code, reason);
      },
      queuedBytes: () => socket.bufferedAmount,
      pause: () => socket.pause(),
      resume: () => socket.resume(),
    };
  },
});
