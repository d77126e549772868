/** Plain HTTP with node:http: a method, a path, headers, a body, and the answer. */
import { Agent, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { text } from "node:stream/consumers";

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests compare bodies of any shape
  readonly json: any;
}

export interface RawRequest {
  readonly token?: string | undefined;
  readonly body?: object | string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** One connection for many requests, like a client's; `close` ends it. */
export class RawHttp {
  readonly #base: URL;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(base: string) {
    this.#base = new URL(base);
  }

  send(method: string, path: string, { token, body, headers = {} }: RawRequest = {}) {
    const content = typeof body === "object" ? JSON.stringify(body) : body;
    return new Promise<RawAnswer>((resolve, reject) => {
      const sent = httpRequest(
        {
          agent: this.#agent,
          host: this.#base.hostname,
          port: this.#base.port,
          method,
          path,
          headers: {
            ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
            ...(content === undefined
              ? {}
              : {
                  "content-type": "application/json",
                  "content-length": String(Buffer.byteLength(content)),
                }),
            ...headers,
          },
        },
        (answer) => {
          text(answer).then((whole) => {
            const isJson = /[/+]json/.test(answer.headers["content-type"] ?? "");
            resolve({
              status: answer.statusCode ?? 0,
              headers: answer.headers,
              text: whole,
              json: isJson ? JSON.parse(whole) : undefined,
            });
          }, reject);
        },
      );
      sent.on("error", reject);
      sent.end(content);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
