import type { Client } from "@blindrelay/client-sdk";
import { makeToken } from "@blindrelay/protocol";
import { expect, it } from "vitest";
import type { Secret, Settings } from "../config/settings.ts";
import { rekeyAgent } from "./rekey.ts";

const TOKEN = makeToken("e2e", new Uint8Array(32).fill(1));
const SECRET: Secret = { agentToken: TOKEN, version: "1", deviceKey: null };
const PUSH_KEY = makeToken("push", new Uint8Array(32).fill(2));

it.each([2 ** 53 - 2, 2 ** 53 - 1, 1e308, -1, 0.5])(
  "proves and keeps no new secret for an agent whose last serial is %d",
  async (serial) => {
    const asked: unknown[] = [];
    const call = async (_method: string, params: unknown) => {
      asked.push(params);
      return { serial, trial: null };
    };
    const client = { agent: () => ({ call }) } as unknown as Client;
    // The keyring is not written: it has no folder here.
    const settings = { keptSecretOf: () => SECRET, sentSecretOf: () => null };
    const end = rekeyAgent(client, settings as unknown as Settings, "pump-7", PUSH_KEY);
    await expect(end).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringMatching(/^pump-7 says a last serial that is/),
    });
    expect(asked).toEqual([{}]);
  },
);
