/** The client's own connection: it reconnects by itself, and says so. */
import { connect } from "@blindrelay/client-sdk/node";

const { BLINDRELAY_URL, BLINDRELAY_ACCOUNT_TOKEN } = process.env;
const refused = await connect({ url: "http://127.0.0.1:1", accountToken: BLINDRELAY_ACCOUNT_TOKEN })
  .then(() => null)
  .catch((error) => error);
console.log(refused.code, refused.retryable);
// → UNREACHABLE true

const client = await connect({ url: BLINDRELAY_URL, accountToken: BLINDRELAY_ACCOUNT_TOKEN });
client.on("link", ({ state, reason }) => console.log(state, reason));
client.close();
