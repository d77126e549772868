/**
 * Decides which addresses share a failure counter (section 3, "lockout scope"): an IPv4 address
 * counts by itself, an IPv6 address as its /64, because one site or one attacker holds a whole /64.
 */

/** IPv4 addresses inside IPv6: mapped, and by NAT64 (RFC 6052), in the last 32 bits. */
const IPV4_AT_THE_END = ["0:0:0:0:0:ffff", "64:ff9b:0:0:0:0"];
/** 6to4 (RFC 3056): the IPv4 address of the /48's holder follows. */
const SIX_TO_FOUR = "2002";

/**
 * The key under which an address is counted: `203.0.113.7`, or `2001:db8:1:2::/64`. An IPv6 address
 * that contains an IPv4 one (mapped, NAT64, 6to4) counts as that; a zone (`%eth0`) is dropped;
 * other text is its own key.
 */
export const addressKey = (address: string): string => {
  if (!address.includes(":")) {
    return address;
  }
  const groups = expand(address.toLowerCase());
  if (IPV4_AT_THE_END.includes(groups.slice(0, 6).join(":"))) return ipv4Of(groups.slice(6));
  if (groups[0] === SIX_TO_FOUR) return ipv4Of(groups.slice(1, 3));
  return `${groups.slice(0, 4).join(":")}::/64`;
};

/** The eight groups of an IPv6 address, hexadecimal without leading zeros. */
const expand = (address: string): string[] => {
  const [plain] = address.split("%") as [string];
  const [head, tail] = plain.split("::") as [string, string | undefined];
  const before = groupsOf(head);
  const after = groupsOf(tail ?? "");
  const zeros = new Array<string>(Math.max(0, 8 - before.length - after.length)).fill("0");
  return tail === undefined ? before : [...before, ...zeros, ...after];
};

const groupsOf = (text: string): string[] =>
  text === ""
    ? []
    : text.split(":").flatMap((group) => (group.includes(".") ? quad(group) : trim(group)));

/** The two groups of an IPv6 address that `192.0.2.1` fills. */
const quad = (dotted: string): string[] => {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split(".").map(Number);
  return [(a * 256 + b).toString(16), (c * 256 + d).toString(16)];
};

const trim = (group: string): string => group.replace(/^0+(?=.)/, "");

const ipv4Of = (groups: readonly string[]): string => groups.flatMap(bytesOf).join(".");

const bytesOf = (group: string): number[] => {
  const value = Number.parseInt(group, 16);
  return [value >> 8, value & 0xff];
};
