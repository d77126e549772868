/** An agent and a client in one program of a user of the SDKs: prints what the agent answered. */
import { startAgent } from "@blindrelay/agent-sdk/node";
import { connect } from "@blindrelay/client-sdk/node";

const talk = async (env) => {
  const [url, agentToken] = [env.BLINDRELAY_URL, env.BLINDRELAY_AGENT_TOKEN];
  const running = await startAgent({
    url,
    agentId: env.BLINDRELAY_AGENT_ID,
    relayToken: env.BLINDRELAY_RELAY_TOKEN,
    agentToken,
    stateDir: env.BLINDRELAY_STATE_DIR,
    packetVersion: env.BLINDRELAY_PACKET_VERSION,
    program: (agent) => agent.handle("echo", (params) => params),
    log: () => {},
  });
  await running.online();
  const client = await connect({ url, accountToken: env.BLINDRELAY_ACCOUNT_TOKEN });
  const options = { version: env.BLINDRELAY_PACKET_VERSION };
  const agent = client.agent(env.BLINDRELAY_AGENT_ID, agentToken, options);
  console.log(JSON.stringify(await agent.call("echo", { percent: 40 })));
  client.close();
  await running.stop();
};

talk(process.env).catch((error) => {
  console.error(error);
  process.exit(1);
});
