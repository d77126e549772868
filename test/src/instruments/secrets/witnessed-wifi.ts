/** Replaces the tools' Wi-Fi module in all tests: the witness registers each password given. */
import { readWifi as read } from "../../../../tools/src/base/wifi.ts";
import { noteSecret } from "./witness.ts";

export * from "../../../../tools/src/base/wifi.ts";

export const readWifi: typeof read = async (ssid) => {
  const wifi = await read(ssid);
  noteSecret(wifi.password);
  return wifi;
};
