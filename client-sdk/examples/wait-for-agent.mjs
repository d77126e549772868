/** A call to a device that sleeps: it waits, until its deadline, for the device to come online. */
import { connect } from "@blindrelay/client-sdk/node";

const { BLINDRELAY_URL, BLINDRELAY_ACCOUNT_TOKEN, BLINDRELAY_SLEEPER_TOKEN } = process.env;
const client = await connect({ url: BLINDRELAY_URL, accountToken: BLINDRELAY_ACCOUNT_TOKEN });
const sleeper = client.agent("sleeper", BLINDRELAY_SLEEPER_TOKEN);

const now = await sleeper.call("valve.state").catch((error) => error);
console.log(now.code);
// → AGENT_OFFLINE
const later = await sleeper.call("valve.state", undefined, {
  waitForAgent: true,
  timeoutMs: 120_000,
});
console.log(later);
// → { percent: 0 }
client.close();
