/** Compiled against the packages' types, strictly and without the workspace. */
import type { Program } from "@blindrelay/agent-sdk";
import { startAgent } from "@blindrelay/agent-sdk/node";
import { serialLinks } from "@blindrelay/agent-sdk/serial/node";
import { Streams } from "@blindrelay/agent-sdk/streams";
import { CallError } from "@blindrelay/client-sdk";
import { connect } from "@blindrelay/client-sdk/node";
import { Rest } from "@blindrelay/client-sdk/rest";
import { makeToken } from "@blindrelay/protocol";
import { nodeSuite } from "@blindrelay/protocol/suites/node";

export const program: Program = (agent) => agent.handle("echo", (params) => params);

export const ask = async (): Promise<unknown> => {
  const client = await connect({ url: "http://127.0.0.1", accountToken: "acct_" });
  return client.agent("pump-7", "e2e_").call("echo", { percent: 40 });
};

export const names = async (): Promise<string[]> => {
  const { user } = await new Rest({ url: "http://127.0.0.1", proxy: null }).logIn({
    username: "ada",
    password: "",
  });
  await connect({ url: "http://127.0.0.1", accountToken: user.api_token });
  const rest = new Rest({ url: "http://127.0.0.1", token: user.api_token });
  return (await rest.list("AgentPage", "/agents")).map(({ name }) => name);
};

// @ts-expect-error: if types did not resolve, all would be `any` and this no error.
export const wrong = connect({ url: 1, accountToken: "acct_" });

export { CallError, makeToken, nodeSuite, Streams, serialLinks, startAgent };
