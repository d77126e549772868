/**
 * What a start needs from a board's flash: the configuration, and the medium of the boot count.
 *
 * [portable]
 */
import { decodeJson, isObject, own } from "@blindrelay/protocol/crypto";
import type { AgentSessionLimits } from "@blindrelay/protocol/session";
import type { BoardConfig as WrittenConfig } from "../board/provision.ts";
import type { StoragePort } from "../ports.ts";
import type { EspruinoStorage } from "./board.ts";

/** The file "blindrelay.json" in Storage. Written by `blindrelay provision`. */
export interface BoardConfig extends Omit<WrittenConfig, "v" | "device_key"> {
  /** "2" if the board has AES. */
  readonly v: "1" | "2";
  /** Bytes of the ring that `system.log` answers from: 1,024 unless set; 0: no such method. */
  readonly log?: number;
  /** In place of SMALL_AGENT_LIMITS, or of some of them. */
  readonly limits?: Partial<AgentSessionLimits>;
}

/** The configuration; throws if it is missing or incomplete. */
export const readConfig = (storage: EspruinoStorage): BoardConfig => {
  const config = decodeJson(`${storage.read("blindrelay.json")}`);
  if (!isObject(config)) {
    throw new Error("no blindrelay.json in Storage: run blindrelay provision");
  }
  for (const key of ["url", "agent_id", "relay_token", "agent_token", "v"]) {
    if (typeof own(config, key) !== "string") throw new Error(`blindrelay.json: ${key} is missing`);
  }
  return config as unknown as BoardConfig;
};

/** Files in flash; every `write` is on the medium when it returns. */
export const storageFiles = (storage: EspruinoStorage): StoragePort => ({
  read: (name: string): string | null => {
    const text = storage.read(name);
    return text === undefined ? null : `${text}`;
  },
  write: (name: string, text: string): void => {
    if (!storage.write(name, text)) throw new Error("no space in flash: run Storage.compact()");
  },
});
