import { connect } from "@blindrelay/client-sdk/node";

const { BLINDRELAY_URL: url, BLINDRELAY_ACCOUNT_TOKEN: accountToken } = process.env;
const client = await connect({ url, accountToken });
const agent = client.agent(process.env.BLINDRELAY_AGENT_ID, process.env.BLINDRELAY_AGENT_TOKEN);
console.log(JSON.stringify(await agent.call("echo", { percent: 40 })));
client.close();
