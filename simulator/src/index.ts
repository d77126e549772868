export type { Report } from "./report/report.ts";
export { defineScenario, type Fault, type FaultKind, type Scenario } from "./scenario/schema.ts";
