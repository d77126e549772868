/**
 * Line settings, and as they are in JSON: in the configuration of a bridge and in
 * `serial.configure`.
 */
import { isObject, own } from "../encoding/json.ts";

export type Parity = "none" | "even" | "odd" | "mark" | "space";
export type FlowControl = "none" | "rts" | "xon";

export interface LineSettings {
  readonly baudRate: number;
  readonly dataBits: 5 | 6 | 7 | 8;
  readonly parity: Parity;
  readonly stopBits: 1 | 1.5 | 2;
  readonly flowControl: FlowControl;
}

export const DEFAULT_SETTINGS: LineSettings = {
  baudRate: 115_200,
  dataBits: 8,
  parity: "none",
  stopBits: 1,
  flowControl: "none",
};

export interface SettingsJson {
  readonly baud_rate: number;
  readonly data_bits: number;
  readonly parity: Parity;
  readonly stop_bits: number;
  readonly flow_control: FlowControl;
}

const ALLOWED: { readonly [name: string]: (value: unknown) => boolean } = {
  baud_rate: (value) => Number.isInteger(value) && Number(value) >= 50 && Number(value) <= 4e6,
  data_bits: (value) => [5, 6, 7, 8].includes(value as number),
  parity: (value) => ["none", "even", "odd", "mark", "space"].includes(value as string),
  stop_bits: (value) => [1, 1.5, 2].includes(value as number),
  flow_control: (value) => ["none", "rts", "xon"].includes(value as string),
};

/** Whether a value has every setting, and each a possible one. */
export const isSettings = (value: unknown): value is SettingsJson =>
  isObject(value) && Object.entries(ALLOWED).every(([name, allowed]) => allowed(own(value, name)));

export const settingsAsJson = (settings: LineSettings): SettingsJson => ({
  baud_rate: settings.baudRate,
  data_bits: settings.dataBits,
  parity: settings.parity,
  stop_bits: settings.stopBits,
  flow_control: settings.flowControl,
});

/** `base` with the changes in `params`; throws an Error for an invalid setting. */
export const readSettings = (params: unknown, base: LineSettings): LineSettings => {
  if (typeof params !== "object" || params === null) throw new Error("settings are an object");
  const next: Record<string, unknown> = { ...settingsAsJson(base) };
  for (const [name, value] of Object.entries(params)) {
    const allowed = own(ALLOWED, name) as ((value: unknown) => boolean) | undefined;
    if (allowed === undefined) {
      throw new Error(`no setting "${name}": ${Object.keys(ALLOWED).join(", ")}`);
    }
    if (!allowed(value)) throw new Error(`${name} cannot be ${JSON.stringify(value)}`);
    next[name] = value;
  }
  const json = next as unknown as SettingsJson;
  return {
    baudRate: json.baud_rate,
    dataBits: json.data_bits as LineSettings["dataBits"],
    parity: json.parity,
    stopBits: json.stop_bits as LineSettings["stopBits"],
    flowControl: json.flow_control,
  };
};
