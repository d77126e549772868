/** What a device refuses is an error with `remote`; everything else has a code of this SDK. */
import { CallError, connect } from "@blindrelay/client-sdk/node";

const { BLINDRELAY_URL, BLINDRELAY_ACCOUNT_TOKEN, BLINDRELAY_AGENT_ID, BLINDRELAY_AGENT_TOKEN } =
  process.env;
const client = await connect({ url: BLINDRELAY_URL, accountToken: BLINDRELAY_ACCOUNT_TOKEN });
const valve = client.agent(BLINDRELAY_AGENT_ID, BLINDRELAY_AGENT_TOKEN);

const attempt = async (method, params) => {
  try {
    console.log(await valve.call(method, params));
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    console.log(error.code, error.remote?.code, error.remote?.message);
  }
};
await attempt("valve.open", { percent: 400 });
// → REMOTE -32000 percent: 0 to 100
await attempt("valve.explode");
// → REMOTE -32601 unknown method "valve.explode"
client.close();

await attempt("valve.state");
// → CLOSED undefined undefined
