/** Every agent that a command talks to, by the secret that this machine has for it. */
import type { Agent, Client } from "@blindrelay/client-sdk";
import type { Secret } from "../config/settings.ts";

/** An agent by its secret. Throws a CallError for values that do not go together. */
export const agentWith = (client: Client, agentId: string, secret: Secret): Agent =>
  client.agent(agentId, secret.agentToken, {
    version: secret.version,
    ...(secret.deviceKey === null ? {} : { deviceKey: secret.deviceKey }),
  });
