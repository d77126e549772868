/**
 * A backend keeps the account token and gives a page a session token: a day, 10,000 requests, no
 * right to change the account. The page connects with it, and with the secrets that it may use.
 */
import { connect } from "@blindrelay/client-sdk/node";
import { Rest } from "@blindrelay/client-sdk/rest";

const {
  BLINDRELAY_URL: url,
  BLINDRELAY_ACCOUNT_TOKEN,
  BLINDRELAY_AGENT_ID,
  BLINDRELAY_AGENT_TOKEN,
} = process.env;
const rest = new Rest({ url, token: BLINDRELAY_ACCOUNT_TOKEN });
const { session_token, expires_in } = await rest.ask("SessionAnswer", "POST", "/auth/session");
console.log(session_token.slice(0, 5), expires_in);
// → sess_ 86400

const client = await connect({ url, sessionToken: session_token });
console.log(await client.agent(BLINDRELAY_AGENT_ID, BLINDRELAY_AGENT_TOKEN).call("system.ping"));
// → {}
client.close();
