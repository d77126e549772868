/** From a password to a client. Needs BLINDRELAY_USERNAME and BLINDRELAY_PASSWORD. */
import { connect } from "@blindrelay/client-sdk/node";
import { Rest } from "@blindrelay/client-sdk/rest";

const {
  BLINDRELAY_URL: url,
  BLINDRELAY_USERNAME: username,
  BLINDRELAY_PASSWORD: password,
} = process.env;
// With a second factor also `totp_code`.
const { user } = await new Rest({ url }).logIn({ username, password });
console.log(user.username, user.role);
// → ada admin

const client = await connect({ url, accountToken: user.api_token });
console.log("connected");
// → connected
client.close();
