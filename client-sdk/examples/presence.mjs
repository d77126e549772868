/** Which agents are online: those that are now, then every change. The relay's unproven claim. */
import { connect } from "@blindrelay/client-sdk/node";

const { BLINDRELAY_URL, BLINDRELAY_ACCOUNT_TOKEN } = process.env;
const client = await connect({
  url: BLINDRELAY_URL,
  accountToken: BLINDRELAY_ACCOUNT_TOKEN,
  presence: true,
});
client.on("presence", ({ agentId, online }) => {
  console.log(agentId, online);
  client.close();
});
// → valve-1 true
