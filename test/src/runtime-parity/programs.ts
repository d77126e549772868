/** The device program files that every board runs unchanged. */
import { fileURLToPath } from "node:url";
import type { Program } from "@blindrelay/agent-sdk";
import echo from "@blindrelay/simulator/devices/echo";
import sensor from "@blindrelay/simulator/devices/sensor";
import valve from "@blindrelay/simulator/devices/valve";
import counter from "../xs/counter.ts";
import edgeCases from "./edge-cases.ts";

interface DeviceProgram {
  readonly path: string;
  /** The exported program of a file. */
  readonly program: Program;
}

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export const PROGRAMS = {
  echo: { path: at("../../../simulator/src/devices/echo.ts"), program: echo },
  sensor: { path: at("../../../simulator/src/devices/sensor.ts"), program: sensor },
  valve: { path: at("../../../simulator/src/devices/valve.ts"), program: valve },
  counter: { path: at("../xs/counter.ts"), program: counter },
  edgeCases: { path: at("./edge-cases.ts"), program: edgeCases },
} satisfies { readonly [name: string]: DeviceProgram };

export type ProgramName = keyof typeof PROGRAMS;
