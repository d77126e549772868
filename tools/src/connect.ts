/** A client for one command: connects within a time limit, and reports failures as exit codes. */
import type { Client } from "@blindrelay/client-sdk";
import { callFailure } from "./call-failure.ts";
import { checkToken } from "./check-token.ts";
import type { Settings } from "./config/settings.ts";
import { Failure } from "./failure.ts";

/** Connects as the account of the settings. Rejects with a Failure. */
export const connectClient = async (
  settings: Settings,
  limitMs: number,
  presence = false,
): Promise<Client> => {
  const url = settings.socketUrl();
  const accountToken = settings.accountToken();
  checkToken(accountToken, "account", "account token");
  // Loaded here, because most commands never connect.
  const { CallError, connect } = await import("@blindrelay/client-sdk/node");
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const text = `no connection to ${url} in ${limitMs / 1000} s`;
    timer = setTimeout(() => reject(new Failure("unreachable", text)), limitMs);
  });
  try {
    return await Promise.race([connect({ url, accountToken, presence }), late]);
  } catch (error) {
    if (error instanceof CallError) throw callFailure(error);
    throw error;
  } finally {
    clearTimeout(timer);
  }
};
