/** Exposes what JSON cannot say, what comes later, and a function that asks for it. */
export default (agent) => {
  const state = { n: 1 };
  state.self = state;
  agent.expose("state", () => state);
  agent.expose("later", async () => ({ broken: true }));
  agent.expose("ask", () => async () => false);
  agent.handle("odd.set", (params) => {
    state.n = params.percent;
    return null;
  });
};
