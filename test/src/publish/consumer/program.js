export default (agent) => {
  agent.handle("echo", (params) => params);
};
