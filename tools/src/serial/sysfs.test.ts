import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { portsOfSysfs } from "./sysfs.ts";

const root = mkdtempSync(join(tmpdir(), "blindrelay-sysfs-"));
afterEach(() => rmSync(root, { recursive: true, force: true }));

it("lists what has hardware behind it, with the USB device's own words", () => {
  const usb = join(root, "sys/devices/usb1/1-2");
  mkdirSync(join(usb, "1-2:1.0/ttyUSB0"), { recursive: true });
  mkdirSync(join(root, "sys/devices/uart/tty"), { recursive: true });
  for (const [file, text] of Object.entries({
    idVendor: "10c4",
    idProduct: "ea60",
    manufacturer: "Silicon Labs",
    serial: "0001",
  })) {
    writeFileSync(join(usb, file), `${text}\n`);
  }
  const tty = join(root, "sys/class/tty");
  for (const name of ["ttyUSB0", "ttyS0", "console"])
    mkdirSync(join(tty, name), { recursive: true });
  symlinkSync(join(usb, "1-2:1.0/ttyUSB0"), join(tty, "ttyUSB0/device"));
  symlinkSync(join(root, "sys/devices/uart"), join(tty, "ttyS0/device"));

  expect(portsOfSysfs(root)).toEqual([
    { path: "/dev/ttyS0" },
    {
      path: "/dev/ttyUSB0",
      manufacturer: "Silicon Labs",
      serialNumber: "0001",
      vendorId: "10c4",
      productId: "ea60",
    },
  ]);
});

it("lists nothing where the system tells nothing", () => {
  expect(portsOfSysfs(join(root, "none"))).toEqual([]);
});
