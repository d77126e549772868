/** The opener for an address. */
import type { PortAddress } from "./address.ts";
import { serialOpener, usbOpener } from "./local.ts";
import type { PortOpener } from "./port.ts";
import { rfc2217Opener } from "./rfc2217.ts";
import { tcpOpener } from "./tcp.ts";

export const openerFor = (address: PortAddress): PortOpener => {
  switch (address.kind) {
    case "serial":
      return serialOpener(address.path);
    case "usb":
      return usbOpener(address.serialNumber);
    case "tcp":
      return tcpOpener(address.host, address.port);
    case "rfc2217":
      return rfc2217Opener(address.host, address.port);
  }
};
