/**
 * A typical device program for a small board: ten handlers, a timer with a controller in fractions,
 * events, nested JSON and promises. It must work with 2,630 variables.
 */
import type { Agent } from "@blindrelay/agent-sdk";

export default (agent: Agent): void => {
  const state = { target: 21.5, current: 19.25, output: 0, mode: "auto" };
  const pid = { kp: 2.5, ki: 0.1, kd: 0.05, integral: 0, last: 0 };
  const schedule = [
    { day: "mon", from: "06:30", to: "22:00", target: 21 },
    { day: "sat", from: "08:00", to: "23:30", target: 22.5 },
  ];
  let ticks = 0;

  const step = () => {
    const error = state.target - state.current;
    pid.integral = Math.max(-50, Math.min(50, pid.integral + error * 2));
    const derivative = (error - pid.last) / 2;
    pid.last = error;
    const wanted = pid.kp * error + pid.ki * pid.integral + pid.kd * derivative;
    state.output = Math.max(0, Math.min(100, wanted));
    state.current += state.output * 0.01 - 0.05;
  };

  agent.every(2000, () => {
    ticks++;
    step();
    agent.emit("tick", { n: ticks, output: Math.round(state.output) });
  });
  agent.handle("state", () => state);
  agent.handle("target.set", (params) => {
    if (typeof params.target !== "number") throw new Error("target must be a number");
    state.target = params.target;
    agent.emit("target", { target: state.target, room: "Küche" });
    return state;
  });
  agent.handle("mode.set", (params) => {
    state.mode = params.mode;
    return { mode: state.mode };
  });
  agent.handle("pid.get", () => pid);
  agent.handle("pid.set", (params) => Object.assign(pid, params));
  agent.handle("schedule.get", () => ({ schedule: schedule, count: schedule.length }));
  agent.handle("schedule.add", (params) => {
    if (schedule.length >= 4) throw { code: 12, message: "full", data: { size: 4 } };
    schedule.push(params);
    return schedule.length;
  });
  agent.handle("boost", (params) => {
    if (params.fail) return Promise.reject(new Error("no heat"));
    return new Promise((resolve) => agent.after(params.ms, () => resolve({ boost: true })));
  });
  agent.handle("echo", (params) => params);
  agent.handle("info", () => ({ ticks: ticks, nested: { a: [1, [2, { b: "grün" }]], c: null } }));
};
