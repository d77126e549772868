/**
 * `agent.storage` on Espruino, which travels with the programs that use it
 * (build/program-storage.ts): a board whose program keeps nothing does not contain this.
 *
 * [portable]
 */
import { DeviceStorage } from "../core/storage.ts";
import type { EspruinoStorage } from "./board.ts";
import { storageFiles } from "./files.ts";

declare const require: (name: string) => unknown;

/** Made for each use: at rest it would take 200 variables. */
export const makeStorage = (): DeviceStorage =>
  new DeviceStorage(storageFiles(require("Storage") as EspruinoStorage));
