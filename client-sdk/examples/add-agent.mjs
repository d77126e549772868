/**
 * Creates an agent. The relay makes the token with which the device logs in; the end-to-end secret
 * is made here, and never sent to the relay.
 */
import { randomBytes } from "node:crypto";
import { Rest } from "@blindrelay/client-sdk/rest";
import { makeToken } from "@blindrelay/protocol";

const { BLINDRELAY_URL: url, BLINDRELAY_ACCOUNT_TOKEN: token } = process.env;
const rest = new Rest({ url, token });

const made = await rest.ask("AgentCreated", "POST", "/agents", {
  name: "Lamp",
  agent_id: "lamp-9",
});
const agentToken = makeToken("e2e", randomBytes(32)); // keep it: nobody can recover it
console.log(made.agent_id, made.api_token.slice(0, 4), agentToken.slice(0, 4));
// → lamp-9 agt_ e2e_

const rotated = await rest.ask("RotateAgentAnswer", "POST", "/agents/lamp-9/rotate-token");
console.log(rotated.api_token === made.api_token);
// → false
await rest.tell("DELETE", "/agents/lamp-9");
const gone = await rest.ask("Agent", "GET", "/agents/lamp-9").catch((error) => error);
console.log(gone.code, gone.status);
// → NOT_FOUND 404
