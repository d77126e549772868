/** A client for one command: connected within a limit, its failures told as exit codes. */
import { CallError, type Client } from "@blindrelay/client-sdk";
import { connect } from "@blindrelay/client-sdk/node";
import { tokenProblem } from "@blindrelay/protocol";
import { callFailure } from "../call-failure.ts";
import type { Settings } from "../config/settings.ts";
import { Failure } from "../failure.ts";

/** Credentials of the wrong kind or with a typing error are refused before anything is sent. */
export const checkToken = (token: string, kind: "account" | "agent" | "e2e", name: string) => {
  const problem = tokenProblem(token, kind);
  if (problem !== null) throw new Failure("refused", `${name}: ${problem}`);
};

/** Connects as the account of the settings. Rejects with a Failure. */
export const connectClient = async (
  settings: Settings,
  limitMs: number,
  presence = false,
): Promise<Client> => {
  const url = settings.socketUrl();
  const accountToken = settings.accountToken();
  checkToken(accountToken, "account", "account token");
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

/** Resolves at the first SIGINT or SIGTERM. */
export const interrupted = (): Promise<void> =>
  new Promise((resolve) => {
    process.once("SIGINT", () => resolve());
    process.once("SIGTERM", () => resolve());
  });
