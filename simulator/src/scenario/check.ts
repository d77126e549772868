/**
 * Checks that a value is a scenario: its shape by the schema, then the references and rules that a
 * schema cannot express.
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { CALL_ERRORS, MAX_TIMEOUT_MS } from "@blindrelay/client-sdk";
import { isForward } from "@blindrelay/protocol/crypto";
import { didYouMean } from "@blindrelay/protocol/did-you-mean";
import type { TSchema } from "typebox";
import { Errors } from "typebox/schema";
import { parseInvariant, withSources } from "./invariants.ts";
import { MAX_DEVICES } from "./limits.ts";
import { phasesOf } from "./phases.ts";
import { makePlan, makesCalls, type PlannedLoad, plannedCalls, TooManyCalls } from "./plan.ts";
import { type Problem, ScenarioError } from "./problems.ts";
import {
  FAULTS,
  type FaultKind,
  MAX_BOARDS,
  NEEDED_KIND,
  PROGRAM,
  type Scenario,
  ScenarioSchema,
} from "./schema.ts";
import { checkSteps } from "./steps.ts";
import { parseThreshold } from "./thresholds.ts";
import { durationMs, EXPECTED, showMs } from "./units.ts";

/** How calls fail; REMOTE may be followed by the code of the device's error. */
const FAILURES: readonly string[] = Object.keys(CALL_ERRORS);
/** What is counted as failed: also calls without an outcome, or with a wrong one. */
const COUNTED: readonly string[] = [...FAILURES, "WRONG_ANSWER", "NOT_MADE", "OPEN_AT_END"];

export type Path = readonly (string | number)[];
/** The position of a value in its file, or of its key. */
export type Place = (path: Path, part: "key" | "value") => { line: number; column: number };

/** Reports a mistake at a path of the scenario. */
export type ReportProblem = (path: Path, message: string, part?: "key" | "value") => void;
/** May replace parts of a scenario of valid shape, and report mistakes. */
export type Change = (scenario: Scenario, folder: string, report: ReportProblem) => Scenario;

/** The value as a scenario. Throws a ScenarioError with every mistake. */
export function check(
  given: unknown,
  file: string,
  folder: string,
  placeOf: Place,
  change: Change = (scenario) => scenario,
): Scenario {
  const problems: Problem[] = [];
  const report: ReportProblem = (path, message, part = "value") => {
    problems.push({ file, ...placeOf(path, part), message });
  };
  const value = withSources(given);
  checkShape(value, report);
  // Rules assume values of a valid shape.
  if (problems.length > 0) throw new ScenarioError(problems);
  const scenario = change(value as Scenario, folder, report);
  const { length } = problems;
  checkRules(scenario, folder, report);
  if (problems.length === length) checkCalls(scenario, report);
  if (scenario.world === "live") checkLive(scenario, report);
  else checkVirtual(scenario, report);
  if (problems.length > 0) throw new ScenarioError(problems);
  return scenario;
}

function checkShape(value: unknown, report: ReportProblem): void {
  const whole = { ...(value as object) } as { faults?: unknown; thresholds?: unknown };
  // Alternatives are checked one by one, so that a mistake is reported for the intended one.
  const { faults, thresholds } = whole;
  if (Array.isArray(faults)) delete whole.faults;
  if (Array.isArray(thresholds)) delete whole.thresholds;
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  checkAgainst(ScenarioSchema, isObject ? whole : value, [], report);
  if (Array.isArray(faults)) {
    for (const [i, fault] of faults.entries()) checkFaultShape(fault, ["faults", i], report);
  }
  if (Array.isArray(thresholds)) {
    for (const [i, threshold] of thresholds.entries()) {
      const at = ["thresholds", i];
      if (typeof threshold === "string") continue;
      const schema = (ScenarioSchema.properties.thresholds as unknown as { items: TSchema }).items;
      const [, object] = (schema as unknown as { anyOf: [TSchema, TSchema] }).anyOf;
      checkAgainst(object, threshold, at, report);
    }
  }
}

function checkFaultShape(fault: unknown, at: Path, report: ReportProblem): void {
  const kind = (fault as { kind?: unknown } | null)?.kind;
  const known = Object.keys(FAULTS);
  if (typeof kind !== "string" || !known.includes(kind)) {
    report(
      [...at, "kind"],
      `unknown kind of fault${didYouMean(String(kind), known)}; there are ${known.join(", ")}`,
    );
    return;
  }
  checkAgainst(FAULTS[kind as FaultKind].schema, fault, at, report);
}

/** `base`: the path of `value`. */
function checkAgainst(schema: TSchema, value: unknown, base: Path, report: ReportProblem): void {
  const told = new Set<string>();
  const [, errors] = Errors(schema, value);
  for (const error of errors) {
    const path = [...base, ...pointer(error.instancePath)];
    const params = error.params as Record<string, unknown>;
    if (error.keyword === "boolean") continue; // additionalProperties reports it too
    if (error.keyword === "additionalProperties") {
      for (const key of params.additionalProperties as string[]) {
        const known = Object.keys(propertiesAt(schema, pointer(error.instancePath)));
        report([...path, key], `unknown key "${key}"${didYouMean(key, known)}`, "key");
      }
      continue;
    }
    if (error.keyword === "required") {
      for (const key of params.requiredProperties as string[]) {
        report(path, `"${key}" is missing`);
      }
      continue;
    }
    const place = path.join("/");
    if (told.has(place)) continue;
    told.add(place);
    const { pattern } = (propertiesAt(schema, pointer(error.instancePath), true) ?? {}) as {
      pattern?: string;
    };
    const isText = error.keyword === "type" && pattern !== undefined;
    const why = isText
      ? explain("pattern", { pattern }, "")
      : explain(error.keyword, params, error.message);
    report(path, `${named(path)}${why}`);
  }
}

function explain(keyword: string, params: Record<string, unknown>, message: string): string {
  if (keyword === "pattern") {
    const pattern = String(params.pattern).replace(/^\/|\/$/g, "");
    return `must be ${EXPECTED.get(pattern) ?? "a short name: letters, digits, - and _"}`;
  }
  if (keyword === "enum") return `must be one of ${(params.allowedValues as string[]).join(", ")}`;
  return message
    .replace(/^must be (?=(array|integer|object)$)/, "must be an ")
    .replace(/^must be (?=(boolean|number|string)$)/, "must be a ");
}

function named(path: Path): string {
  const last = path.at(-1);
  return last === undefined ? "the scenario " : `${typeof last === "number" ? path.at(-2) : last} `;
}

function pointer(text: string): (string | number)[] {
  return text
    .split("/")
    .slice(1)
    .map((step) =>
      /^[0-9]+$/.test(step) ? Number(step) : step.replaceAll("~1", "/").replaceAll("~0", "~"),
    );
}

/** The properties of the part of a schema at `path`; `itself`: that part. */
function propertiesAt(schema: TSchema, path: readonly (string | number)[], itself = false): object {
  let at = schema as unknown as Record<string, unknown>;
  for (const step of path) {
    const properties = at.properties as Record<string, Record<string, unknown>> | undefined;
    const next = typeof step === "number" ? at.items : properties?.[step];
    if (next === undefined) return {};
    at = next as Record<string, unknown>;
  }
  return itself ? at : ((at.properties as object | undefined) ?? {});
}

function checkRules(scenario: Scenario, folder: string, report: ReportProblem): void {
  const { devices, clients = [], faults = [], allow = [], thresholds = [] } = scenario;
  const { invariants = [] } = scenario;
  const endMs = durationMs(scenario.duration);
  const groups = new Map<string, Scenario["devices"][number]>();
  const callers = new Set(clients.map(({ name }, i) => name ?? `clients-${i + 1}`));
  const within = (path: Path, text: string | undefined): void => {
    if (text !== undefined && durationMs(text) > endMs) {
      report(path, `is after the end of the run (${scenario.duration})`);
    }
  };
  const isTimeout = (path: Path, text: string | undefined): void => {
    const ms = durationMs(text ?? "1s");
    if (!(ms >= 1 && ms <= MAX_TIMEOUT_MS)) {
      report(path, `must be from 1ms to ${showMs(MAX_TIMEOUT_MS)}`);
    }
  };
  const mustExist = (path: Path, file: string | undefined): void => {
    if (file !== undefined && !existsSync(resolve(folder, file))) {
      report(path, `there is no file ${file}`);
    }
  };
  const mustBeGroup = (path: Path, group: string | undefined): void => {
    if (group !== undefined && !groups.has(group)) {
      report(path, `unknown group${didYouMean(group, [...groups.keys()])}`);
    }
  };
  const { timezone = "UTC", start = "2026-01-01T00:00Z" } = scenario;
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: timezone });
  } catch {
    report(["timezone"], `there is no time zone ${timezone}; write one such as Europe/Berlin`);
  }
  const startMs = Date.parse(start);
  // What a month does not have, such as a 30th of February, is read as a day of the next one.
  if (Number.isNaN(startMs) || new Date(startMs).getUTCDate() !== Number(start.slice(8, 10))) {
    report(["start"], "there is no such time");
  } else if (startMs < 0) report(["start"], "must be 1970 or later");
  if (endMs < 1000) report(["duration"], "must be at least 1s");
  let total = 0;
  for (const [i, device] of devices.entries()) {
    const at = ["devices", i];
    total += device.count;
    if (groups.has(device.group)) report([...at, "group"], "this group was named before");
    else groups.set(device.group, device);
    if ((device.program === undefined) === (device.kind === undefined)) {
      report(at, "give either a program (a file) or a kind (sensor, valve, echo, busy)");
    }
    mustExist([...at, "program"], device.program);
    within([...at, "start", "at"], device.start?.at);
    within([...at, "start", "over"], device.start?.over);
  }
  if (total > MAX_DEVICES) report(["devices"], `${total} devices; at most ${MAX_DEVICES}`);
  const names = new Set<string>();
  for (const [i, client] of clients.entries()) {
    const at = ["clients", i];
    const group = groups.get(client.devices);
    const own = client.name ?? `clients-${i + 1}`;
    if (names.has(own)) report([...at, "name"], "this name was used before");
    names.add(own);
    mustBeGroup([...at, "devices"], client.devices);
    if (
      group !== undefined &&
      client.call === undefined &&
      client.steps === undefined &&
      group.program !== undefined &&
      !client.presence
    ) {
      report(at, 'which method? give "call", such as call: pump.state');
    }
    if (client.steps !== undefined) {
      const { call, params, expect } = client;
      for (const [key, value] of Object.entries({ call, params, expect })) {
        if (value !== undefined) report([...at, key], "is in steps", "key");
      }
      const { steps, count = 1 } = client;
      checkSteps(steps, count, (path, message) => report([...at, "steps", ...path], message));
      for (const [k, { fails, timeout }] of steps.entries()) {
        checkCode([...at, "steps", k, "fails"], fails, FAILURES, report);
        isTimeout([...at, "steps", k, "timeout"], timeout);
      }
    }
    const ways = (["every", "rate", "calls"] as const).filter((way) => client[way] !== undefined);
    const choice = '"every" (closed loop), "rate" (open loop) or "calls" (a number to each device)';
    if (ways.length > 1) report([...at, ways[1] as string], `give either ${choice}`);
    if (ways.length === 0 && !client.presence) report(at, `how often? give ${choice}`);
    if (client.to_rate !== undefined && client.rate === undefined) {
      report([...at, "to_rate"], "goes with rate");
    }
    if (client.at_once !== undefined && client.calls === undefined) {
      report([...at, "at_once"], "goes with calls");
    }
    if (
      client.params !== undefined &&
      (typeof client.params !== "object" || client.params === null)
    ) {
      report([...at, "params"], "must be an object or an array");
    }
    isTimeout([...at, "timeout"], client.timeout);
    within([...at, "from"], client.from);
    within([...at, "until"], client.until);
  }
  for (const [i, { kind, devices: group, from }] of (scenario.drivers ?? []).entries()) {
    const at = ["drivers", i];
    within([...at, "from"], from);
    const needed = NEEDED_KIND[kind];
    if (needed === undefined) {
      if (group !== undefined) report([...at, "devices"], `${kind} has an agent of its own`);
    } else if (groups.get(group ?? "")?.kind !== needed) {
      report(at, `${kind} needs devices of the kind ${needed} (devices: …)`);
    }
  }
  for (const [i, fault] of faults.entries()) {
    const at = ["faults", i];
    within([...at, "at"], fault.at);
    mustBeGroup([...at, "devices"], fault.devices);
    if (fault.clients !== undefined && !callers.has(fault.clients)) {
      report([...at, "clients"], `unknown clients${didYouMean(fault.clients, [...callers])}`);
    }
    if (fault.devices !== undefined && fault.clients !== undefined) {
      report([...at, "clients"], "give either devices or clients");
    }
    const nodes = scenario.relay?.nodes ?? 1;
    if (fault.node !== undefined && fault.node > nodes) {
      report([...at, "node"], `there are ${nodes} nodes (relay: { nodes: … })`);
    }
    if (nodes === 1 && (fault.kind.startsWith("bus.") || fault.kind === "relay.freeze")) {
      report([...at, "kind"], `${fault.kind} needs several nodes (relay: { nodes: 2 })`);
    }
    const trialS = durationMs(fault.trial ?? "60s") / 1000;
    if (!(Number.isInteger(trialS) && trialS >= 1 && trialS <= 3600)) {
      report([...at, "trial"], "a trial lasts whole seconds, from 1s to 1h");
    }
    mustExist([...at, "program"], fault.program);
  }
  for (const [i, { code, rate }] of allow.entries()) {
    checkCode(["allow", i, "code"], code, [...COUNTED, PROGRAM], report);
    if (code === PROGRAM && rate !== undefined) {
      report(["allow", i, "rate"], `${PROGRAM} is not how calls end, and has no share of them`);
    }
  }
  let phaseEndMs = 0;
  const phaseNames = new Set<string>();
  for (const [i, { name, until }] of (scenario.phases ?? []).entries()) {
    if (phaseNames.has(name)) report(["phases", i, "name"], "this name was used before");
    phaseNames.add(name);
    if (durationMs(until) <= phaseEndMs) {
      report(["phases", i, "until"], "must be after the end of the phase before it");
    }
    phaseEndMs = durationMs(until);
  }
  mustExist(["stubs"], scenario.stubs);
  for (const [i, { devices: group, always }] of invariants.entries()) {
    mustBeGroup(["invariants", i, "devices"], group);
    const parsed = parseInvariant(String(always));
    if ("problem" in parsed) report(["invariants", i, "always"], parsed.problem);
  }
  for (const [i, threshold] of thresholds.entries()) {
    const isText = typeof threshold === "string";
    const parsed = parseThreshold(isText ? threshold : threshold.expression);
    const at = ["thresholds", i, ...(isText ? [] : ["expression"])];
    if ("problem" in parsed) report(at, parsed.problem);
    else {
      mustBeGroup(at, parsed.where?.group);
      const { phase } = parsed.where ?? {};
      const names = phasesOf(scenario).map(({ name }) => name);
      if (phase !== undefined && !names.includes(phase)) {
        report(at, `there is no phase "${phase}"; there are ${names.join(", ")}`);
      }
    }
  }
}

function checkCode(
  at: Path,
  code: string | undefined,
  codes: readonly string[],
  report: ReportProblem,
): void {
  const known = code?.replace(/^REMOTE -?[0-9]+$/, "REMOTE");
  if (known === undefined || codes.includes(known)) return;
  report(at, `no call ends so${didYouMean(known, codes)}; there are ${codes.join(", ")}`);
}

/** Calls that cannot be made: they begin too late, are too rare, or wait for too long. */
function checkCalls(scenario: Scenario, report: ReportProblem): void {
  for (const [i, load] of loadsOf(scenario, report).entries()) {
    if (!makesCalls(load)) continue;
    if (plannedCalls(load) > 0) {
      checkPauses(load, ["clients", i], report);
      continue;
    }
    const { from, until, every, rate } = load.spec;
    const [begin, end] = [showMs(load.fromUs / 1000), showMs(load.untilUs / 1000)];
    const over = until === undefined ? "the run ends" : "they end";
    const why =
      load.fromUs < load.untilUs
        ? `none is due at ${every === undefined ? rate : `one every ${every}`}`
        : from === undefined
          ? "by default, they begin 10s after the last device was switched on (from: …)"
          : "none is made";
    const at = ["clients", i, ...(from === undefined ? [] : ["from"])];
    report(at, `${load.name}: calls begin at ${begin}, ${over} at ${end}: ${why}`);
  }
}

/** None where one is too large to be planned, which is reported. */
function loadsOf(scenario: Scenario, report: ReportProblem): readonly PlannedLoad[] {
  try {
    return makePlan(scenario, scenario.seed ?? 1).loads;
  } catch (error) {
    if (!(error instanceof TooManyCalls)) throw error;
    report(["clients", error.load, "rate"], error.message);
    return [];
  }
}

/** Sequences that cannot be as many as planned, because their steps wait for longer. */
function checkPauses({ spec, ...load }: PlannedLoad, at: Path, report: ReportProblem): void {
  const pauseMs = (spec.steps ?? []).reduce((sum, { after }) => sum + durationMs(after ?? "0s"), 0);
  const takes = `the steps of one sequence wait for ${showMs(pauseMs)} (after: …)`;
  const roomMs = (load.untilUs - load.fromUs) / 1000;
  const isRepeated = load.everyUs > 0 && load.everyUs < load.untilUs - load.fromUs;
  if (isRepeated && pauseMs * 1000 >= load.everyUs) {
    report([...at, "every"], `${takes}, so none can begin every ${spec.every}`);
  } else if (load.each * pauseMs > roomMs) {
    report([...at, "calls"], `${takes}: ${load.each} of them do not fit in ${showMs(roomMs)}`);
  }
}

/** What only a world without real clocks, addresses and stores can do. */
function checkLive(scenario: Scenario, report: ReportProblem): void {
  const { devices, clients = [], network, faults = [] } = scenario;
  const needsVirtual = "needs world: virtual";
  const refuse = <T extends object>(at: Path, part: T, keys: readonly (keyof T & string)[]) => {
    for (const key of keys)
      if (part[key] !== undefined) report([...at, key], `${key} ${needsVirtual}`, "key");
  };
  refuse([], scenario, ["start", "relay", "invariants", "same", "drivers"]);
  for (const [i, client] of clients.entries())
    refuse(["clients", i], client, ["abort_after", "wait_for_agent", "leaves", "account"]);
  for (const [i, device] of devices.entries())
    refuse(["devices", i], device, ["account", "address", "clock"]);
  for (const [i, { kind }] of faults.entries()) {
    if (!FAULTS[kind].live) report(["faults", i, "kind"], `${kind} ${needsVirtual}`);
  }
  checkBoards({ devices, network, faults }, report);
}

/** Engines of boards are processes, and Espruino has its own sockets. */
function checkBoards(
  { devices, network, faults = [] }: Pick<Scenario, "devices" | "network" | "faults">,
  report: ReportProblem,
): void {
  let boards = 0;
  const espruino = new Set<string>();
  for (const [i, device] of devices.entries()) {
    const { engine = "node", group, count, packet_version: version, limits } = device;
    if (engine !== "node") {
      boards += count;
      if (limits !== undefined) report(["devices", i, "limits"], `${engine} has limits of its own`);
      if (isForward(version)) {
        report(["devices", i, "packet_version"], `${engine} has versions "1" and "2" here`);
      }
    }
    if (engine !== "espruino") continue;
    espruino.add(group);
    if (device.network !== undefined || network !== undefined) {
      report(["devices", i, "engine"], "no network can be put around an Espruino's own sockets");
    }
  }
  if (boards > MAX_BOARDS) {
    report(["devices"], `${boards} devices in engines of boards; at most ${MAX_BOARDS}`);
  }
  for (const [i, { kind, devices: group, clients }] of faults.entries()) {
    const isHit = group === undefined ? espruino.size > 0 : espruino.has(group);
    if (kind.startsWith("net.") && clients === undefined && isHit) {
      const message = `${kind} does not reach an Espruino's own sockets: aim it at other devices`;
      report(["faults", i, "kind"], message);
    }
  }
}

function checkVirtual({ devices }: Scenario, report: ReportProblem): void {
  for (const [i, { engine = "node" }] of devices.entries()) {
    if (engine !== "node") report(["devices", i, "engine"], `${engine} needs world: live`);
  }
}
