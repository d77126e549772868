/**
 * What every StoragePort must do. Power cuts are tested on the boot count itself
 * (bootcount.test.ts).
 */
import type { Suite } from "@blindrelay/protocol/crypto";
import { describe, expect, it } from "vitest";
import { bootCountMarker, provisionBootCount, raiseBootCount } from "../../core/bootcount.ts";
import { DeviceStorage } from "../../core/storage.ts";
import type { StoragePort } from "../../ports.ts";

export interface StorageUnderTest {
  readonly storage: StoragePort;
  /** The same medium, as a later start sees it. */
  reopen(): StoragePort;
}

export const storageConformance = (
  name: string,
  suite: Suite,
  open: () => StorageUnderTest,
): void => {
  describe(`storage conformance: ${name}`, () => {
    it("returns null for a name that was never written", () => {
      expect(open().storage.read("boot.0")).toBe(null);
    });

    it("reads back what was written, at once and after a restart", () => {
      const { storage, reopen } = open();
      const text = "blindrelay-boot 1 7 00ff\n";
      storage.write("boot.0", text);
      expect(storage.read("boot.0")).toBe(text);
      expect(reopen().read("boot.0")).toBe(text);
    });

    it("replaces the whole text with a shorter one, and with an empty one", () => {
      const { storage, reopen } = open();
      storage.write("a", "long text");
      storage.write("a", "x");
      expect(reopen().read("a")).toBe("x");
      storage.write("a", "");
      expect(reopen().read("a")).toBe("");
    });

    it("distinguishes names of up to 28 characters", () => {
      const { storage, reopen } = open();
      const long = "a234567890123456789012345678";
      storage.write(long, "1");
      storage.write("a", "2");
      expect([reopen().read(long), reopen().read("a")]).toEqual(["1", "2"]);
    });

    it("returns every byte value, including those of a half-erased page", () => {
      const { storage, reopen } = open();
      let bytes = "";
      for (let code = 0; code < 256; code++) bytes += String.fromCharCode(code);
      storage.write("raw", bytes);
      expect(reopen().read("raw")).toBe(bytes);
    });

    it("carries a boot count from start to start", () => {
      const { storage, reopen } = open();
      expect(provisionBootCount(storage, suite, "token")).toEqual({ ok: true, count: 1 });
      for (const count of [2, 3, 4]) {
        expect(raiseBootCount(reopen(), suite, "token")).toEqual({ ok: true, count });
      }
    });

    it("carries it from token to token, and back", () => {
      const { storage, reopen } = open();
      provisionBootCount(storage, suite, "token");
      expect(raiseBootCount(reopen(), suite, "token")).toEqual({ ok: true, count: 2 });
      expect(provisionBootCount(reopen(), suite, "other")).toEqual({ ok: true, count: 3 });
      expect(provisionBootCount(reopen(), suite, "token")).toEqual({ ok: true, count: 4 });
      expect(raiseBootCount(reopen(), suite, "token")).toEqual({ ok: true, count: 5 });
    });

    it("keeps what a device program stores, beside the boot count", () => {
      const { storage, reopen } = open();
      provisionBootCount(storage, suite, "token");
      const texts = new DeviceStorage(storage);
      expect(texts.get("mode")).toBe(null);
      texts.set("mode", "eco");
      texts.set("a-key_of.24-characters.0", "");
      const all = `é€😀 %41 " \\ \0\x7f\n\ud83d${"x".repeat(220)}`;
      texts.set("odd", all);
      texts.set("mode", "boost");
      const later = new DeviceStorage(reopen());
      expect(later.get("mode")).toBe("boost");
      expect(later.get("a-key_of.24-characters.0")).toBe("");
      expect(later.get("odd")).toBe(all);
      later.remove("mode");
      expect(new DeviceStorage(reopen()).get("mode")).toBe(null);
      expect(raiseBootCount(reopen(), suite, "token")).toEqual({ ok: true, count: 2 });
    });

    it("keeps 16 texts of a device program, of which each can change", () => {
      const { storage, reopen } = open();
      const texts = new DeviceStorage(storage);
      for (let n = 0; n < 16; n++) texts.set(`k${n}`, "x".repeat(256));
      expect(() => texts.set("k16", "")).toThrow(/keeps 16 texts/);
      for (let n = 0; n < 16; n++) texts.set(`k${n}`, `${n}`);
      texts.remove("k3");
      texts.set("k16", "16");
      const later = new DeviceStorage(reopen());
      for (let n = 0; n < 17; n++) expect(later.get(`k${n}`)).toBe(n === 3 ? null : `${n}`);
    });

    it("turns a marker into a count once", () => {
      const { reopen } = open();
      const { name, content } = bootCountMarker(suite, "token");
      for (const count of [2, 3, 4]) {
        reopen().write(name, content);
        expect(raiseBootCount(reopen(), suite, "token")).toEqual({ ok: true, count });
      }
    });
  });
};
