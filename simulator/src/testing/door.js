/** A door with a planted mistake: at 100 % it is neither open nor closed. */
export default (agent) => {
  let percent = 0;
  agent.expose("state", () => ({
    open: percent > 0 && percent < 100 ? 1 : 0,
    closed: percent === 0 ? 1 : 0,
  }));
  agent.handle("door.set", (params) => {
    percent = params.percent;
    return { percent };
  });
  agent.handle("door.later", (params) => {
    agent.after(5000, () => {
      percent = params.percent;
    });
    return null;
  });
};
