/** Repeats a call as long as `retryable` says that this may help and cannot run it twice. */
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "@blindrelay/client-sdk/node";

const { BLINDRELAY_URL, BLINDRELAY_ACCOUNT_TOKEN, BLINDRELAY_AGENT_ID, BLINDRELAY_AGENT_TOKEN } =
  process.env;
const client = await connect({ url: BLINDRELAY_URL, accountToken: BLINDRELAY_ACCOUNT_TOKEN });
const valve = client.agent(BLINDRELAY_AGENT_ID, BLINDRELAY_AGENT_TOKEN);

const callUntilDone = async (method, params, tries = 5) => {
  for (let waitMs = 1000; ; waitMs *= 2) {
    try {
      // Setting a valve to a place twice does no harm; opening it by 10 percent would.
      return await valve.call(method, params, { idempotent: true });
    } catch (error) {
      if (!error.retryable || --tries <= 0) throw error;
      await sleep(waitMs);
    }
  }
};
console.log(await callUntilDone("valve.open", { percent: 15 }));
// → { percent: 15 }
const refused = await callUntilDone("valve.open", { percent: -1 }).catch((error) => error);
console.log(refused.code, refused.retryable);
// → REMOTE false
client.close();
