/** Who a command runs as, by its environment. */
import { makeToken } from "@blindrelay/protocol";
import { expect, it } from "vitest";
import { Settings } from "../config/settings.ts";
import { identify } from "./identity.ts";

const token = (kind: "agent" | "e2e") => makeToken(kind, new Uint8Array(32).fill(7));

it.each([
  ["3", "short", "BLINDRELAY_DEVICE_SECRET: a device key is 43 characters"],
  ["4", "A".repeat(44), "BLINDRELAY_DEVICE_SECRET: a device key is 43 characters"],
  ["1", "A".repeat(43), 'BLINDRELAY_DEVICE_SECRET: a device key belongs to packet versions "3"'],
])(
  "under %s the device secret %s is an error of usage that names the variable",
  async (version, secret, message) => {
    const env = {
      BLINDRELAY_URL: "https://relay.example",
      BLINDRELAY_AGENT_ID: "pump-7",
      BLINDRELAY_RELAY_TOKEN: token("agent"),
      BLINDRELAY_AGENT_TOKEN: token("e2e"),
      BLINDRELAY_PACKET_VERSION: version,
      BLINDRELAY_DEVICE_SECRET: secret,
    };
    await expect(identify(new Settings(env, "default"), {})).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining(message),
    });
  },
);
