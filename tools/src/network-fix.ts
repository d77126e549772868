/** How to fix an unreachable relay, by the system's error. */

const FIXES: readonly (readonly [RegExp, string])[] = [
  [
    /wrong.version.number|packet length too long|EPROTO|record layer/i,
    "this address does not use TLS: use http:// (or ws://)",
  ],
  [
    /self.signed|unable to (verify|get)|certificate|UNABLE_TO_|ERR_TLS/i,
    "name the right host, or trust its certificate authority: NODE_EXTRA_CA_CERTS=FILE",
  ],
  [/ECONNREFUSED/, "is the relay running, and is the port right?"],
  [/ENOTFOUND|EAI_AGAIN/, "is the host name right?"],
  [/EHOSTUNREACH|ENETUNREACH|ETIMEDOUT/, "is this machine online, and is no firewall in the way?"],
  [
    /Unexpected server response|Invalid (WebSocket|Upgrade|Sec)|not a WebSocket/i,
    "is this a relay's address? A proxy in front of it must pass WebSocket upgrades",
  ],
  [
    /socket hang up|ECONNRESET|Parse Error|other side closed|HPE_/i,
    "is this a relay's address and port? A port that uses TLS needs https:// (or wss://)",
  ],
];

/** `; fix: …`, or "" if no fix is known. */
export const networkFix = (why: string): string => {
  const found = FIXES.find(([pattern]) => pattern.test(why));
  return found === undefined ? "" : `; fix: ${found[1]}`;
};

/** OpenSSL's errors contain numbers and paths of its own sources: only their text is kept. */
export const plainReason = (why: string): string =>
  why.replace(
    /(?:write EPROTO )?[0-9A-F]{8,}:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+):[^\s)]*\s*/i,
    "TLS failed, $1",
  );
