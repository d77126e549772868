/**
 * What a start needs from a board's flash: the configuration, and the medium of the boot count.
 *
 * [portable]
 */
import { decodeJson, isObject, own } from "@blindrelay/protocol/crypto";
import type { AgentSessionLimits } from "@blindrelay/protocol/session";
import type { StoragePort } from "../ports.ts";
import type { EspruinoStorage } from "./board.ts";

/** A Wi-Fi network. */
export interface BoardWifi {
  /** 1 to 32 bytes of UTF-8. */
  readonly ssid: string;
  /** 8 to 63 characters; "" for an open network. */
  readonly password: string;
}

/** The file "blindrelay.json" in Storage. Written by `blindrelay provision`. */
export interface BoardConfig {
  /** ws:// or wss:// of the relay, with its path. */
  readonly url: string;
  readonly agent_id: string;
  readonly relay_token: string;
  readonly agent_token: string;
  /** "2" if the board has AES. */
  readonly v: "1" | "2";
  readonly name?: string;
  /**
   * False: it accepts no programs over the relay; `blindrelay flash` omits that code from the file.
   */
  readonly push?: boolean;
  /** `push_`: it accepts only programs that are proven with this key. */
  readonly push_key?: string;
  /** True: `blindrelay flash` writes a file whose secret can be replaced over the relay. */
  readonly rekey?: boolean;
  /** The network that the SDK joins; without it, joining is left to the board. See wifi.ts. */
  readonly wifi?: BoardWifi;
  /** The UART with a bridge at its other end, on a board without a network; see serial.ts. */
  readonly serial?: {
    /** Such as "Serial1". */
    readonly port: string;
    readonly baud: number;
    /** The second argument of Espruino's `Serial.setup`, such as `{"rx": "D8", "tx": "D6"}`. */
    readonly options?: object;
  };
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
