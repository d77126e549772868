/**
 * Runs in XS. The engine's connection to the outside: XS waits for the answer of the process that
 * started it. There are no timers, sockets or flash here; their stand-ins (the other files in this
 * folder) use this connection.
 */
import type { Asked, Told } from "../../engines/xs-messages.ts";

declare const issueCommand: (command: ArrayBuffer) => ArrayBuffer;
declare const Base64: { encode(bytes: ArrayBuffer): string; decode(text: string): ArrayBuffer };

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const encode = (value: unknown): ArrayBuffer =>
  encoder.encode(JSON.stringify(value)).buffer as ArrayBuffer;

/** Sends a request to the outside; null if there is no answer. */
export const ask = (request: Asked): unknown =>
  JSON.parse(decoder.decode(issueCommand(encode(request))));

export const toBase64 = (bytes: Uint8Array): string =>
  Base64.encode(
    bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer,
  );

export const fromBase64 = (text: string): Uint8Array => new Uint8Array(Base64.decode(text));

type Listener = (message: never) => unknown;
const listeners = new Map<string, Listener>();

/** `listener` gets messages of this kind; it returns the answer. */
export const hear = <Op extends Told["op"]>(
  op: Op,
  listener: (message: Extract<Told, { readonly op: Op }>) => unknown,
): void => {
  listeners.set(op, listener);
};

const host = globalThis as { handleCommand?: unknown; trace?: unknown };

host.handleCommand = (message: ArrayBuffer): ArrayBuffer => {
  const told = JSON.parse(decoder.decode(message)) as Told;
  return encode(listeners.get(told.op)?.(told as never) ?? null);
};

host.trace = (text: string): void => {
  ask({ op: "trace", text });
};
