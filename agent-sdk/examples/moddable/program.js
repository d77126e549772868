/** A device program: this very file also runs on Node, in the simulator and on Espruino. */
export default (agent) => {
  let on = false;
  agent.handle("led.set", (params) => {
    on = params.on === true;
    agent.emit("led.changed", { on: on });
    return { on: on };
  });
  agent.handle("echo", (params) => params);
};
