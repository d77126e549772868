export default (agent) => {
  agent.handle("echo", (params) => params);
  setTimeout(() => {
    throw new Error("dry");
  }, 5_000);
};
