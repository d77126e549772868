/** A device program that counts its calls, and emits events by itself. */
import type { Agent } from "@blindrelay/agent-sdk";

export default (agent: Agent): void => {
  let done = 0;
  agent.handle("do", (params) => {
    done += 1;
    agent.emit("done", { times: done });
    return { times: done, with: params };
  });
  agent.handle("done", () => ({ times: done }));
  agent.handle("later", () => Promise.resolve().then(() => ({ late: true })));
  agent.handle("fail", () => {
    throw new Error("no");
  });
};
