/**
 * The serial ports as Linux itself tells them, for machines without udev: containers that were given
 * a port, small distributions.
 */
import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";

/** What `serialport` tells of a port; USB identifiers are four lower-case hexadecimal digits. */
export interface ListedPort {
  readonly path: string;
  readonly manufacturer?: string | undefined;
  readonly serialNumber?: string | undefined;
  readonly vendorId?: string | undefined;
  readonly productId?: string | undefined;
}

const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
};

/** The USB device that a folder of /sys belongs to: the nearest one above that has a vendor. */
const usbOf = (folder: string): Omit<ListedPort, "path"> => {
  for (let at = folder; at !== dirname(at); at = dirname(at)) {
    const vendorId = read(join(at, "idVendor"));
    if (vendorId === undefined) continue;
    return {
      manufacturer: read(join(at, "manufacturer")),
      serialNumber: read(join(at, "serial")),
      vendorId,
      productId: read(join(at, "idProduct")),
    };
  }
  return {};
};

/** The ports with hardware behind them; none if there is no /sys. `root` is "/" but for tests. */
export const portsOfSysfs = (root = "/"): ListedPort[] => {
  const folder = join(root, "sys/class/tty");
  let names: string[];
  try {
    names = readdirSync(folder).sort();
  } catch {
    return [];
  }
  return names.flatMap((name) => {
    try {
      const device = realpathSync(join(folder, name, "device"));
      return [{ path: `/dev/${name}`, ...usbOf(device) }];
    } catch {
      return []; // a console or a pseudo-terminal: nothing is behind it
    }
  });
};
