/** One call and its answer. */
import { connect } from "@blindrelay/client-sdk/node";

const { BLINDRELAY_URL, BLINDRELAY_ACCOUNT_TOKEN, BLINDRELAY_AGENT_ID, BLINDRELAY_AGENT_TOKEN } =
  process.env;
const client = await connect({ url: BLINDRELAY_URL, accountToken: BLINDRELAY_ACCOUNT_TOKEN });
const valve = client.agent(BLINDRELAY_AGENT_ID, BLINDRELAY_AGENT_TOKEN);

const answer = await valve.call("valve.open", { percent: 40 });
console.log(answer);
// → { percent: 40 }
client.close();
