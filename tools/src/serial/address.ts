/** How a user names a port, and which opener that means. */
export type PortAddress =
  | { readonly kind: "serial"; readonly path: string }
  /** By the serial number of its USB adapter, wherever it is plugged in. */
  | { readonly kind: "usb"; readonly serialNumber: string }
  | { readonly kind: "tcp" | "rfc2217"; readonly host: string; readonly port: number };

export const ADDRESS_FORMS = "/dev/tty…, COM3, usb:SERIAL, tcp://host:port or rfc2217://host:port";

const NETWORK = /^(tcp|rfc2217):\/\/(?:\[([0-9A-Fa-f:.]+)\]|([^:/[\]@\s]+)):(\d{1,5})\/?$/;

/** Null if it is not an address. */
export const parseAddress = (text: string): PortAddress | null => {
  const network = NETWORK.exec(text);
  if (network !== null) {
    const port = Number(network[4]);
    if (port < 1 || port > 65_535) return null;
    const kind = network[1] as "tcp" | "rfc2217";
    return { kind, host: network[2] ?? network[3] ?? "", port };
  }
  if (text === "" || text.includes("://")) return null;
  if (text.startsWith("usb:")) {
    const serialNumber = text.slice("usb:".length);
    return serialNumber === "" ? null : { kind: "usb", serialNumber };
  }
  return { kind: "serial", path: text };
};
