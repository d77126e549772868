/**
 * The Moddable SDK's `preference` in memory, with the limits of the platforms that have the
 * tightest.
 */
/** Of one value on ESP8266, RP2040 and nRF52, and of a domain or key on ESP32. */
const MAX_VALUE_BYTES = 63;
const MAX_NAME = 15;

/** Throws if a platform would. */
export class MemoryPreference {
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
