/** One HTTP request, as an edge makes it: `fetch` in browsers, node:http(s) on Node. */

export interface HttpRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Bytes that are read while they are sent: on Node only. */
  readonly body?: string | Blob | AsyncIterable<Uint8Array> | null;
  /** Ends the request, and the reading of its answer. */
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  /** `name`: in lower case. */
  header(name: string): string | null;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Never follows a redirection: a token must not go where it leads. */
export type HttpPort = (request: HttpRequest) => Promise<HttpAnswer>;

/** What came, as text; null: more than `maxBytes`, of which the rest is not read. */
export const readText = async (
  { chunks }: HttpAnswer,
  maxBytes: number,
): Promise<string | null> => {
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > maxBytes) return null;
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
};
