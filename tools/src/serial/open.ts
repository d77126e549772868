/** The opener for an address. */

import type { OpeningLines, PortOpener } from "@blindrelay/agent-sdk/bridge";
import type { PortAddress } from "./address.ts";
import { serialOpener, usbOpener } from "./local.ts";
import { rfc2217Opener } from "./rfc2217.ts";
import { tcpOpener } from "./tcp.ts";

/** Why these lines do not suit this address, or null. */
export const linesProblem = ({ kind }: PortAddress, lines: OpeningLines): string | null => {
  const { dtr, rts, hupcl } = lines;
  const drives = dtr !== undefined || rts !== undefined;
  if (kind === "tcp" && drives) return "plain TCP has no DTR and RTS: use rfc2217://";
  if ((kind === "tcp" || kind === "rfc2217") && hupcl !== undefined) {
    return "hupcl is for a port of this machine: set it at the port server";
  }
  return null;
};

export const openerFor = (address: PortAddress, lines: OpeningLines): PortOpener => {
  switch (address.kind) {
    case "serial":
      return serialOpener(address.path, lines);
    case "usb":
      return usbOpener(address.serialNumber, lines);
    case "tcp":
      return tcpOpener(address.host, address.port);
    case "rfc2217":
      return rfc2217Opener(address.host, address.port, lines);
  }
};
