import { expect, it } from "vitest";
import { DEFAULT_SETTINGS, isSettings, readSettings, settingsAsJson } from "./settings.ts";

const JSON_SETTINGS = settingsAsJson(DEFAULT_SETTINGS);

/** Of each setting: values at and beside its limits. */
const VALUES: { readonly [name: string]: { good: readonly unknown[]; bad: readonly unknown[] } } = {
  baud_rate: { good: [50, 9600, 4_000_000], bad: [49, 4_000_001, 9600.5, "9600", null] },
  data_bits: { good: [5, 6, 7, 8], bad: [4, 9, "8", undefined] },
  parity: { good: ["none", "even", "odd", "mark", "space"], bad: ["None", "", 0] },
  stop_bits: { good: [1, 1.5, 2], bad: [0, 3, "1"] },
  flow_control: { good: ["none", "rts", "xon"], bad: ["cts", true] },
};
const each = (kind: "good" | "bad") =>
  Object.entries(VALUES).flatMap(([name, values]) => values[kind].map((value) => [name, value]));

it.each(each("good") as [string, unknown][])("%s may be %j", (name, value) => {
  const settings = readSettings({ [name]: value }, DEFAULT_SETTINGS);
  expect(settingsAsJson(settings)).toEqual({ ...JSON_SETTINGS, [name]: value });
  expect(isSettings({ ...JSON_SETTINGS, [name]: value })).toBe(true);
});

it.each(each("bad") as [string, unknown][])("%s cannot be %j", (name, value) => {
  expect(() => readSettings({ [name]: value }, DEFAULT_SETTINGS)).toThrow(
    `${name} cannot be ${JSON.stringify(value)}`,
  );
  expect(isSettings({ ...JSON_SETTINGS, [name]: value })).toBe(false);
});

it("changes only what is named, and names the settings if one does not exist", () => {
  const base = readSettings({ baud_rate: 9600, parity: "even" }, DEFAULT_SETTINGS);
  expect(readSettings({ stop_bits: 2 }, base)).toEqual({ ...base, stopBits: 2 });
  expect(readSettings({}, base)).toEqual(base);
  for (const name of ["baudRate", "toString"]) {
    expect(() => readSettings({ [name]: 9600 }, base)).toThrow(
      `no setting "${name}": baud_rate, data_bits, parity, stop_bits, flow_control`,
    );
  }
});

it.each([null, "9600", 9600, undefined])("%j has no settings", (value) => {
  expect(() => readSettings(value, DEFAULT_SETTINGS)).toThrow("settings are an object");
  expect(isSettings(value)).toBe(false);
});

it("a value without one of the settings has not all", () => {
  for (const name of Object.keys(JSON_SETTINGS)) {
    const { [name as keyof typeof JSON_SETTINGS]: _, ...rest } = JSON_SETTINGS;
    expect(isSettings(rest)).toBe(false);
  }
});
