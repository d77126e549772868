/** A device program of a board: a lamp, a button that toggles it, and a sensor. */
export default (agent) => {
  setWatch(() => digitalWrite(LED1, !digitalRead(LED1)), BTN1, { repeat: true, edge: "rising" });
  agent.handle("lamp.set", (params) => {
    digitalWrite(LED1, params.on);
    return { on: digitalRead(LED1) };
  });
  agent.handle("lamp.light", () => {
    const light = analogRead(A1);
    return { light: Number.isNaN(light) ? null : light };
  });
};
