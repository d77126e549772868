// Says which program it is; `greeter-2.js` is its next one.
export default (agent) => {
  agent.handle("which", () => 1);
};
