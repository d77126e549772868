export default (agent) => {
  agent.handle("which", () => 2);
};
