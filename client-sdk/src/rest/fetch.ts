/** The HTTP port of browsers, and of other runtimes with a global `fetch`. */
import type { HttpPort } from "@blindrelay/protocol/net";

export const fetchHttp: HttpPort = async ({ url, body = null, ...init }) => {
  // Only edges that can do it are given bytes to read.
  const given = body as string | Blob | null;
  const settings = { redirect: "manual", credentials: "omit" } as const;
  const response = await fetch(url, { ...init, ...settings, body: given });
  return {
    status: response.status,
    header: (name) => response.headers.get(name),
    chunks: chunksOf(response.body),
  };
};

/** Not all browsers can iterate over a stream. */
async function* chunksOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  if (body === null) return;
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
