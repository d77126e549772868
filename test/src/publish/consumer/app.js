// A browser app as anybody writes it: it logs in over REST, and calls a device over the relay.
import { connect } from "@blindrelay/client-sdk/browser";

const form = document.querySelector("form");
const output = document.querySelector("output");

const rest = async (path, token, body) => {
  const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
  const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const answer = await fetch(`/api/v1${path}`, { headers, ...options });
  const json = await answer.json();
  if (!answer.ok) throw new Error(json.detail);
  return json;
};

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const { password, secret } = Object.fromEntries(new FormData(form));
    const { user } = await rest("/auth/login", "", { username: "ada", password });
    const { items } = await rest("/agents", user.api_token);
    const [{ agent_id, online }] = items;
    const client = await connect({ url: location.origin, accountToken: user.api_token });
    const lamp = await client.agent(agent_id, secret).call("lamp.set", { on: true });
    output.textContent = JSON.stringify({ agent_id, online, lamp });
    client.close();
  } catch (error) {
    output.textContent = error.message;
  }
});
