// A tank that loses a litre a minute and reports when it is empty.
export default (agent) => {
  let litres = 0;
  agent.handle("tank.fill", (params) => {
    if (!(params?.litres >= 0 && params.litres <= 100)) throw new Error("litres: 0 to 100");
    litres = params.litres;
    return { litres };
  });
  agent.handle("tank.state", () => ({ litres, at: Date.now() }));
  agent.every(60_000, () => {
    if (litres === 0) return;
    litres -= 1;
    if (litres === 0) agent.emit("tank.empty", { at: Date.now() });
  });
};
