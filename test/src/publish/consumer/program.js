export default (agent) => {
  let on = false;
  agent.handle("echo", (params) => params);
  agent.handle("lamp.set", (params) => {
    on = params !== undefined && params.on === true;
    return { on: on };
  });
  agent.handle("lamp.state", () => ({ on: on }));
};
