/** For tests: a relay's two interfaces, REST and `/wss`, used as by a program without our SDKs. */
import { once } from "node:events";
import WebSocket from "ws";

// biome-ignore lint/suspicious/noExplicitAny: messages of any shape are compared by tests
export type Message = any;

export interface RestResponse {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed; null if there is none. */
  readonly body: Message;
}

/** One request to the relay at `url`; `path` is what follows `/api/v1`. */
export const callRest = async (
  url: string,
  method: string,
  path: string,
  token: string | null,
  body?: object,
): Promise<RestResponse> => {
  const answer = await fetch(`${url}/api/v1${path}`, {
    method,
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return {
    status: answer.status,
    headers: answer.headers,
    body: text === "" ? null : JSON.parse(text),
  };
};

export interface TestPeer {
  readonly socket: WebSocket;
  /** The `auth_response`. */
  readonly answer: Message;
  /** The next message or, at its end, `{ closed: code }`; pings are answered and left out. */
  next(): Promise<Message>;
  /** What has arrived and was not taken. */
  waiting(): Message[];
  send(message: object): void;
}

/** A link to the relay at `url` that has sent `auth`. `from`: the address that a proxy has seen. */
export const connectPeer = async (url: string, auth: object, from?: string): Promise<TestPeer> => {
  const headers = from === undefined ? {} : { "x-forwarded-for": from };
  const socket = new WebSocket(`${url.replace("http", "ws")}/wss`, { headers });
  const queue: Message[] = [];
  let wake = () => {};
  const put = (item: Message) => {
    queue.push(item);
    wake();
  };
  socket.on("message", (text) => {
    const message = JSON.parse(String(text));
    if (message.type === "ping") socket.send('{"type":"pong"}');
    else put(message);
  });
  socket.on("close", (code) => put({ closed: code }));
  socket.on("error", () => undefined);
  await once(socket, "open");
  const next = async (): Promise<Message> => {
    while (queue.length === 0) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    return queue.shift();
  };
  const send = (message: object) => socket.send(JSON.stringify(message));
  send({ type: "auth", ...auth });
  return { socket, answer: await next(), next, send, waiting: () => queue.splice(0) };
};
