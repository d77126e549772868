/** A client for one command: connects within a time limit, and reports failures as exit codes. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@blindrelay/client-sdk";
import { Failure } from "@blindrelay/protocol/command-line";
import { asFailure, callFailure } from "../base/call-failure.ts";
import { checkToken } from "../base/check-token.ts";
import { printStatus } from "../base/output.ts";
import type { Settings } from "../config/settings.ts";

const RETRY_MS = 2_000;

/** `waits`: for a relay that is not reachable, within the limit. */
interface Connecting {
  readonly presence?: boolean;
  readonly waits?: boolean;
}

/** Connects as the account of the settings. `limitMs`: null for none. Rejects with a Failure. */
export const connectClient = async (
  settings: Settings,
  limitMs: number | null,
  { presence = false, waits = false }: Connecting = {},
): Promise<Client> => {
  const url = settings.socketUrl();
  const accountToken = settings.accountToken();
  checkToken(accountToken, "account", "account token");
  // Loaded here, because most commands never connect.
  const { CallError, connect } = await import("@blindrelay/client-sdk/node");
  let isOver = false;
  const connected = async (): Promise<Client> => {
    for (let tries = 0; ; tries++) {
      try {
        return await connect({ url, accountToken, presence });
      } catch (error) {
        const isAway = error instanceof CallError && error.code === "UNREACHABLE";
        if (!waits || !isAway || isOver) throw error;
        if (tries === 0) printStatus(`${callFailure(error).message} (it keeps trying)`);
        await sleep(RETRY_MS);
      }
    }
  };
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    if (limitMs === null) return;
    const text = `no connection to ${url} in ${limitMs / 1000} s`;
    timer = setTimeout(() => reject(new Failure("unreachable", text)), limitMs);
  });
  try {
    return await Promise.race([connected(), late]);
  } catch (error) {
    throw asFailure(error);
  } finally {
    isOver = true;
    clearTimeout(timer);
  }
};

/** What `use` makes of such a client, which is closed then. Rejects with a Failure for a call's. */
export const withClient = async <T>(
  settings: Settings,
  limitMs: number | null,
  use: (client: Client) => Promise<T>,
  connecting?: Connecting,
): Promise<T> => {
  const client = await connectClient(settings, limitMs, connecting);
  try {
    return await use(client);
  } catch (error) {
    throw asFailure(error);
  } finally {
    client.close();
  }
};
