/**
 * The hardware of simulated devices: the SDK's bundled stubs of Espruino's and Moddable's globals,
 * under those of the scenario's file. Each device has its own, and they are as the device's other
 * globals: by its clock and its seed.
 */
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import type { StubbedDevice } from "@blindrelay/agent-sdk/stubs";
import { type Globals, type LoadedProgram, loadProgram } from "./program.ts";

export type Stubs = Record<string, unknown>;
type MakeStubs = (device: StubbedDevice) => Stubs;

let bundled: LoadedProgram | undefined;
const bundledFile = (): LoadedProgram => {
  if (bundled === undefined) {
    const file = fileURLToPath(import.meta.resolve("@blindrelay/agent-sdk/stubs"));
    bundled = loadProgram(file, `bundled-stubs${extname(file)}`);
  }
  return bundled;
};

/** What only hardware has: a program that names none of it needs no bundled stubs. */
const HARDWARE =
  /\b(Pin|digital(Write|Read|Pulse)|analog(Read|Write)|(get)?pinMode|getPinMode|(set|clear)Watch|get(Time|Serial)|print|trace|E|device|LED\d?|BTN\d?|[ABCD]\d\d?|(I2C|SPI|Serial)\d)\b/;

export const usesHardware = (source: string): boolean => HARDWARE.test(source);

/**
 * Makes the stubs of one device, anew for each start. The variables of the file outlive them: they
 * are what is around the device.
 */
export const stubsOf = (
  program: LoadedProgram,
  file: LoadedProgram | undefined,
  globals: Globals,
): ((device: StubbedDevice) => Stubs) | null => {
  const usesBundled = usesHardware(program.source);
  if (!usesBundled && file === undefined) return null;
  const instance = (one: LoadedProgram): MakeStubs =>
    one.instantiate(globals) as unknown as MakeStubs;
  const makes = [...(usesBundled ? [bundledFile()] : []), ...(file === undefined ? [] : [file])];
  const instances = makes.map(instance);
  return (device) => {
    const stubs: Stubs = {};
    for (const make of instances) {
      const made = make(device) as unknown;
      if (typeof made !== "object" || made === null) {
        throw new Error("stubs: the file exports (device) => ({ name: … }), the device's globals");
      }
      Object.assign(stubs, made);
    }
    return stubs;
  };
};
