/** A call to each agent of an account. The SDK paces them; one that fails stops no other. */
import { connect } from "@blindrelay/client-sdk/node";
import { Rest } from "@blindrelay/client-sdk/rest";

const {
  BLINDRELAY_URL: url,
  BLINDRELAY_ACCOUNT_TOKEN: accountToken,
  BLINDRELAY_AGENT_TOKEN,
  BLINDRELAY_SLEEPER_TOKEN,
} = process.env;
// Where the end-to-end secrets are is up to you: the relay has none.
const secrets = new Map([
  ["valve-1", BLINDRELAY_AGENT_TOKEN],
  ["sleeper", BLINDRELAY_SLEEPER_TOKEN],
]);
const rest = new Rest({ url, token: accountToken });
const ids = [];
for await (const agent of rest.items("AgentPage", "/agents")) ids.push(agent.agent_id);

const client = await connect({ url, accountToken });
const calls = ids.sort().map((id) => client.agent(id, secrets.get(id)).call("system.ping"));
for (const [at, { status, reason }] of (await Promise.allSettled(calls)).entries()) {
  console.log(ids[at], reason?.code ?? status);
}
// → sleeper AGENT_OFFLINE
// → valve-1 fulfilled
client.close();
