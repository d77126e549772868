/**
 * Stand-ins for modules of the Moddable SDK, with the limits of the platform that has the tightest.
 */
import type { ModdablePreference, ModdableTime, ModdableTimer } from "../moddable/sdk.ts";

/** `timer`: delays are 32-bit integers there, and no fraction survives. */
export const fakeTimer: ModdableTimer = {
  set: (fn, ms = 0) => setTimeout(fn, ms | 0),
  clear: (handle) => clearTimeout(handle as NodeJS.Timeout),
};

/** `time`, whose ticks are a wrapping 32-bit integer; they start shortly before they wrap. */
export const fakeTime = (now: () => number = () => performance.now()): ModdableTime => {
  const start = now();
  const ticks = (): number => (0x7ffffffb + Math.floor(now() - start)) | 0;
  return {
    get ticks() {
      return ticks();
    },
    delta: (since, until) => (until - since) | 0,
  };
};

/** Of one value on ESP8266, RP2040 and nRF52, and of a domain or key on ESP32. */
const MAX_VALUE_BYTES = 63;
const MAX_NAME = 15;

/** `preference`: throws where a platform would. */
export class FakePreference implements ModdablePreference {
  readonly values = new Map<string, ArrayBuffer>();

  get(domain: string, key: string): ArrayBuffer | undefined {
    return this.values.get(`${domain}/${key}`)?.slice();
  }

  set(domain: string, key: string, value: ArrayBuffer): void {
    if (domain.length > MAX_NAME || key.length > MAX_NAME) throw new Error("name too long");
    if (value.byteLength === 0 || value.byteLength > MAX_VALUE_BYTES) throw new Error("can't save");
    this.values.set(`${domain}/${key}`, value.slice());
  }
}
