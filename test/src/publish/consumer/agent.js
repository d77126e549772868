import { startAgent } from "@blindrelay/agent-sdk/node";
import program from "./program.js";

const running = await startAgent({
  url: process.env.BLINDRELAY_URL,
  agentId: process.env.BLINDRELAY_AGENT_ID,
  relayToken: process.env.BLINDRELAY_RELAY_TOKEN,
  agentToken: process.env.BLINDRELAY_AGENT_TOKEN,
  stateDir: process.env.BLINDRELAY_STATE_DIR,
  program,
});
await running.online();
console.log("online");
