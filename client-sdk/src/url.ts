/** A relay's address as specified by the caller. */
import { relayUrl as findRelay } from "@blindrelay/protocol/relay-url";
import { CallError } from "./errors.ts";

/** See @blindrelay/protocol/relay-url; throws a CallError BAD_ARGUMENT if that throws. */
export const relayUrl = (text: string): string => {
  try {
    return findRelay(text);
  } catch (cause) {
    throw new CallError("BAD_ARGUMENT", (cause as Error).message, { cause });
  }
};
