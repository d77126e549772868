/** A device program that does everything that a handler may do, valid or not. */
import type { Agent } from "@blindrelay/agent-sdk";

export default (agent: Agent): void => {
  agent.handle("same", (params) => params);
  agent.handle("kind", (params, context) => ({
    params: Array.isArray(params) ? "array" : typeof params,
    notification: context.notification,
  }));

  agent.handle("null", () => null);
  agent.handle("undefined", () => undefined);
  agent.handle("false", () => false);
  agent.handle("zero", () => 0);
  agent.handle("empty", () => "");
  agent.handle("function", () => () => 1);
  agent.handle("omitted", () => ({ a: undefined, b: () => 1, c: null, d: [null] }));
  agent.handle("unsayable", (params) => {
    const values: unknown[] = [0 / 0, 1 / 0, undefined, () => 1];
    return { a: null, readings: [{ celsius: 0.5 }, [values[params.which]]] };
  });
  agent.handle("circle", () => {
    const circle: unknown[] = [];
    circle.push(circle);
    return circle;
  });
  agent.handle("date", () => ({ at: new Date(86400000), half: 1 / 2 }));
  // From a param; otherwise the build computes them and writes literals.
  agent.handle("numbers", (params) => {
    const three = params.three;
    return [
      1 / (three + 4),
      1 / three,
      three - 1 / 2251799813685248,
      1e21,
      1048576 * 1048576 * three,
      -0,
    ];
  });

  agent.handle("literals", () => [0.3, -1.1, 2.718281828459045e5, 1e-7]);

  agent.handle("throw", () => {
    throw new Error("the pump is dry");
  });
  agent.handle("throw.nothing", () => {
    throw new Error();
  });
  agent.handle("throw.text", () => {
    throw "a text";
  });
  agent.handle("throw.null", () => {
    throw null;
  });
  agent.handle("throw.away", () => {
    throw { unavailable: true, sent: true, message: "the line is down" };
  });
  agent.handle("throw.code", (params) => {
    throw { code: params.code, message: "dry", data: { level: 0.5 } };
  });
  agent.handle("throw.long", (params) => {
    throw new Error("x".repeat(params.length));
  });

  agent.handle("promise", () => Promise.resolve({ late: true }));
  agent.handle("promise.undefined", () => Promise.resolve());
  agent.handle("promise.rejected", () => Promise.reject(new Error("not today")));
  agent.handle("promise.rejected.nothing", () => Promise.reject());
  agent.handle("promise.timer", () => new Promise((resolve) => agent.after(5, () => resolve(5))));
  // Espruino creates no promise if the executor has no parameters.
  agent.handle("never", () => new Promise((resolve) => agent.after(3600000, () => resolve(0))));

  agent.handle("fill", (params) => "x".repeat(params.length));
  agent.handle("emit", (params) => {
    for (let i = 0; i < params.times; i++) agent.emit("counted", { i: i });
    agent.emit("bare");
    return { sent: true };
  });
  agent.handle("emit.long", (params) => {
    agent.emit("long", { x: "x".repeat(params.length) });
  });
};
