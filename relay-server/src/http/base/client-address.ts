/**
 * The address that a request came from (section 3, "lockout scope"): the socket's, unless that is a
 * configured proxy; then the last address in X-Forwarded-For that is not a proxy. The header is
 * ignored from any other sender, because a forged one would lock out others.
 */
import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";

/** The address to count failures for. Also used for upgrades to `/wss`. */
export type AddressReader = (request: IncomingMessage) => string;

/**
 * `trusted`: addresses or CIDR ranges; throws a TypeError for any other text. `warn` is called
 * once, for the first untrusted sender of the header.
 */
export const addressReader = (
  trusted: readonly string[],
  warn: (address: string) => void,
): AddressReader => {
  const proxies = proxyList(trusted);
  const isProxy = (address: string): boolean => {
    const family = isIP(address);
    return family !== 0 && proxies.check(address, family === 6 ? "ipv6" : "ipv4");
  };
  let warned = false;
  return (request) => {
    const nearest = request.socket.remoteAddress ?? "";
    const header = request.headers["x-forwarded-for"];
    if (header === undefined) return nearest;
    if (!isProxy(nearest)) {
      if (!warned) warn(nearest);
      warned = true;
      return nearest;
    }
    const hops = [header].flat().join(",").split(",").map(addressIn);
    const last = hops.findLast((hop) => !isProxy(hop)) ?? "";
    // Entries before a hop that is not an address were not written by a trusted proxy.
    return isIP(last) === 0 ? nearest : last;
  };
};

/** Some proxies include the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
const addressIn = (hop: string): string => {
  const text = hop.trim();
  const withPort = /^(?:([0-9.]+)|\[(.+)\])(?::[0-9]+)?$/.exec(text);
  return withPort?.[1] ?? withPort?.[2] ?? text;
};

const proxyList = (trusted: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const text of trusted) {
    const [, address = "", bits] = /^([^/]*)(?:\/(\d+))?$/.exec(text) ?? [];
    const family = isIP(address);
    const prefix = bits === undefined ? (family === 6 ? 128 : 32) : Number(bits);
    if (family === 0) {
      throw new TypeError(`${text} is neither an address nor a range like 10.0.0.0/8`);
    }
    list.addSubnet(address, prefix, family === 6 ? "ipv6" : "ipv4");
  }
  return list;
};
