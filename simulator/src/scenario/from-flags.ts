/**
 * Scenarios from the command line: one from a device program, a number of devices and the calls to
 * make, and changes to one from a file.
 */
import { Failure } from "@blindrelay/protocol/command-line";
import { parseJson } from "@blindrelay/protocol/parse-json";
import type { ClientGroupSpec, DeviceGroupSpec, Scenario } from "./schema.ts";

export interface AskedCall {
  method: string;
  params?: unknown;
}

/** Devices, if neither a scenario nor a flag says how many. */
export const DEFAULT_AGENTS = 100;
/** A short default, because the user waits for real time. */
const TIMES = {
  virtual: { duration: "2m", every: "20s", over: "10s" },
  live: { duration: "30s", every: "5s", over: "5s" },
} as const;
/** Per connection: 1,024 bindings, and about 1,000 messages a second. */
const DEVICES_PER_CLIENT = 250;

/** `METHOD` or `METHOD:JSON`. Throws an Error with the reason. */
export function parseCall(text: string): AskedCall {
  const colon = text.search(/:\s*[[{]/);
  const method = colon < 0 ? text : text.slice(0, colon);
  if (method.trim() === "" || /\s/.test(method)) {
    throw new Error(`--call takes METHOD or METHOD:JSON, such as valve.open:'{"percent":40}'`);
  }
  if (colon < 0) {
    const other = text.indexOf(":");
    if (other < 0) return { method };
    throw new Error(`--call ${text.slice(0, other)}: params are a JSON object or array`);
  }
  try {
    return { method, params: parseJson(text.slice(colon + 1)) };
  } catch (error) {
    throw new Error(`--call ${method}: ${(error as Error).message}`);
  }
}

export function scenarioOf(
  program: string,
  agents: number,
  calls: readonly AskedCall[],
  world: "virtual" | "live" = "virtual",
): Scenario {
  const { duration, every, over } = TIMES[world];
  const count = Math.min(1000, Math.ceil(agents / DEVICES_PER_CLIENT));
  const clients = calls.map(
    ({ method, params }): ClientGroupSpec => ({
      count,
      devices: "devices",
      call: method,
      every,
      ...(params === undefined ? {} : { params }),
    }),
  );
  return {
    name: `${agents} devices with ${program}`,
    duration,
    world,
    devices: [{ group: "devices", count: agents, program, start: { over } }],
    clients,
    thresholds: [`agents.online == ${agents}`],
  };
}

/**
 * The scenario with the program and number of devices from the command line. Throws a Failure
 * (usage) if they cannot be put into it.
 */
export function override(
  scenario: Scenario,
  program: string | undefined,
  agents: number | undefined,
): Scenario {
  const { length } = scenario.devices;
  if (agents !== undefined && agents < length) {
    const why = `the scenario has ${length} groups, each with at least one device`;
    throw new Failure("usage", `--agents ${agents}: ${why}`);
  }
  const takes = (group: DeviceGroupSpec) => group.program !== undefined || length === 1;
  if (program !== undefined && !scenario.devices.some(takes)) {
    throw new Failure("usage", "--program: no group of the scenario has a program to replace");
  }
  const total = scenario.devices.reduce((sum, { count }) => sum + count, 0);
  const wanted = agents ?? total;
  let left = wanted;
  const devices = scenario.devices.map((group, i) => {
    const share = Math.max(1, Math.round((group.count * wanted) / total));
    const later = length - 1 - i; // groups, which get one each
    const count = later === 0 ? left : Math.min(share, left - later);
    left -= count;
    const { kind, ...rest } = group;
    return program !== undefined && takes(group)
      ? { ...rest, count, program }
      : { ...group, count };
  });
  return { ...scenario, devices };
}
