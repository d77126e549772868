/** Runs in XS, in place of the SDK's `preference`: the medium outlives the engine. */
import { ask, fromBase64, toBase64 } from "./bridge.ts";

const get = (domain: string, key: string): ArrayBuffer | undefined => {
  const value = ask({ op: "get", domain, key }) as string | null;
  return value === null ? undefined : (fromBase64(value).buffer as ArrayBuffer);
};

const set = (domain: string, key: string, value: ArrayBuffer): void => {
  const done = ask({ op: "put", domain, key, value: toBase64(new Uint8Array(value)) });
  if (done !== true) throw new Error("can't save prefs");
};

export default { get, set };
