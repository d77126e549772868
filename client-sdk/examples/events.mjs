/** The events of an agent, and what is said of lost ones. A listener keeps a session open. */
import { once } from "node:events";
import { connect } from "@blindrelay/client-sdk/node";

const { BLINDRELAY_URL, BLINDRELAY_ACCOUNT_TOKEN, BLINDRELAY_AGENT_ID, BLINDRELAY_AGENT_TOKEN } =
  process.env;
const client = await connect({ url: BLINDRELAY_URL, accountToken: BLINDRELAY_ACCOUNT_TOKEN });
const valve = client.agent(BLINDRELAY_AGENT_ID, BLINDRELAY_AGENT_TOKEN);

const heard = new EventTarget();
valve.on("event", (name, data) => {
  console.log(name, data);
  heard.dispatchEvent(new Event("moved"));
});
valve.on("gap", (count, of) => console.log("lost:", count, of));
valve.on("interrupted", (reason) => console.log("interrupted:", reason));
valve.on("reopened", (reason) => console.log("again, some may be missing:", reason));

const moved = once(heard, "moved");
await valve.call("valve.open", { percent: 70 });
await moved;
// → valve.moved { percent: 70 }
client.close();
// → interrupted: the client ends
