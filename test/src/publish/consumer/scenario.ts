import { defineScenario } from "@blindrelay/simulator";

export default defineScenario({
  name: "lamps on a bad afternoon",
  duration: "2m",
  devices: [{ group: "lamps", count: 20, program: "./program.js", start: { over: "10s" } }],
  clients: [{ devices: "lamps", call: "lamp.state", expect: { on: false }, every: "10s" }],
  faults: [{ at: "1m", kind: "net.cut", devices: "lamps", share: "20%", for: "5s" }],
  allow: [{ code: "AGENT_OFFLINE" }],
  thresholds: ["agents.online == 20", "call.wrong == 0", "call.ok > 100"],
});
