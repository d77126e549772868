/** A call ends by its deadline, here or at the device, or when you abort it. */
import { connect } from "@blindrelay/client-sdk/node";

const { BLINDRELAY_URL, BLINDRELAY_ACCOUNT_TOKEN, BLINDRELAY_AGENT_ID, BLINDRELAY_AGENT_TOKEN } =
  process.env;
const client = await connect({ url: BLINDRELAY_URL, accountToken: BLINDRELAY_ACCOUNT_TOKEN });
const valve = client.agent(BLINDRELAY_AGENT_ID, BLINDRELAY_AGENT_TOKEN);

console.log(await valve.call("valve.open", { percent: 5 }, { timeoutMs: 60_000 }));
// → { percent: 5 }

const stop = new AbortController();
const call = valve.call("valve.flush", undefined, { signal: stop.signal });
stop.abort();
const error = await call.catch((error) => error);
console.log(error.code);
// → ABORTED
client.close();
