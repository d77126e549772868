/** What an agent says of itself: its methods, its memory, the largest call that it takes. */
import { connect } from "@blindrelay/client-sdk/node";

const { BLINDRELAY_URL, BLINDRELAY_ACCOUNT_TOKEN, BLINDRELAY_AGENT_ID, BLINDRELAY_AGENT_TOKEN } =
  process.env;
const client = await connect({ url: BLINDRELAY_URL, accountToken: BLINDRELAY_ACCOUNT_TOKEN });
const valve = client.agent(BLINDRELAY_AGENT_ID, BLINDRELAY_AGENT_TOKEN);

const { methods, max_plaintext, free_memory } = await valve.call("system.info");
console.log(methods.filter((name) => !name.startsWith("system.")));
// → [ 'valve.open', 'valve.state', 'valve.flush' ]
console.log(max_plaintext > 300, free_memory > 0);
// → true true
client.close();
