/**
 * Why a relay cannot be reached, in the words of both SDKs and all commands: one table from what
 * the network says to what a person should do.
 */

export interface Reason {
  readonly name: ReasonName;
  /** What happened, and the fix if one is known. Contains no secret. */
  readonly text: string;
}

interface Row {
  /** Codes and texts of the engine's errors. */
  readonly errors?: RegExp;
  readonly fix: string;
}

/** The first row that matches an error is its reason. */
const TABLE = {
  proxy_refuses: {
    errors: /^PROXY_REFUSES/,
    fix: "let the proxy pass this host, or name the host in NO_PROXY; 407 asks for HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT",
  },
  proxy_away: {
    errors: /^PROXY_AWAY/,
    fix: "is the proxy that HTTPS_PROXY (or HTTP_PROXY, ALL_PROXY) names right? NO_PROXY names hosts to reach without it",
  },
  proxy_setting: {
    errors: /^PROXY_SETTING/,
    fix: "name one as http://HOST:PORT, or this host in NO_PROXY",
  },
  redirected: { fix: "use that address, because secrets are not sent on to it" },
  gateway: { fix: "is the relay behind this proxy running? See the logs of both" },
  not_a_relay: {
    errors: /Invalid (WebSocket|Upgrade|Sec)|not a WebSocket/i,
    fix: "is this a relay's address? A proxy in front of it must pass WebSocket upgrades, and a port that uses TLS needs https:// (or wss://)",
  },
  clock: {
    errors: /CERT_NOT_YET_VALID|not yet valid/,
    fix: "set this machine's clock",
  },
  expired: {
    errors: /CERT_HAS_EXPIRED|has expired/,
    fix: "renew the relay's certificate, or set this machine's clock if it is ahead",
  },
  wrong_name: {
    errors: /ALTNAME_INVALID/,
    fix: "use the name that is in the certificate",
  },
  untrusted: {
    errors: /SELF_SIGNED|UNABLE_TO_|self.signed|unable to (verify|get)|ERR_TLS|certificate/i,
    fix: "name the right host, or trust its certificate authority: NODE_EXTRA_CA_CERTS=FILE",
  },
  no_tls: {
    errors: /wrong.version.number|packet length too long|EPROTO|record layer/i,
    fix: "this address does not use TLS: use http:// (or ws://)",
  },
  refused: { errors: /ECONNREFUSED/, fix: "is the relay running, and is the port right?" },
  unknown_host: { errors: /ENOTFOUND|EAI_AGAIN/, fix: "is the host name right?" },
  no_route: {
    errors: /EHOSTUNREACH|ENETUNREACH|ETIMEDOUT/,
    fix: "is this machine online, and is no firewall in the way? Where only a proxy leads out, set HTTPS_PROXY",
  },
  hung_up: {
    errors: /socket hang up|ECONNRESET|Parse Error|other side closed|HPE_/i,
    fix: "is this a relay's address and port? A port that uses TLS needs https:// (or wss://)",
  },
  unknown: { fix: "" },
} satisfies Record<string, Row>;

export type ReasonName = keyof typeof TABLE;

export const REASONS: { readonly [name in ReasonName]: Row } = TABLE;

const ORDER = Object.keys(REASONS) as ReasonName[];

const reason = (name: ReasonName, what: string): Reason => {
  const { fix } = REASONS[name];
  return { name, text: fix === "" ? what : `${what}; fix: ${fix}` };
};

/** OpenSSL's errors contain numbers and paths of its own sources: only their text is kept. */
const plain = (text: string): string =>
  text.replace(
    /(?:write EPROTO )?\b[0-9A-F]{8,}:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+):[^\s)]*\s*/i,
    "TLS failed, $1",
  );

/** An error of a socket, or of what was built on one. `fetch` hides it in a cause. */
export const reasonOfError = (error: unknown): Reason => {
  const outer = error as { cause?: unknown };
  const { message, code, errors } = (
    outer.cause instanceof Error && (outer as { code?: unknown }).code === undefined
      ? outer.cause
      : outer
  ) as Partial<Error> & { readonly code?: unknown; readonly errors?: unknown };
  // A name with several addresses fails with an error that has no message.
  const first = Array.isArray(errors) ? (errors[0] as Partial<Error> | undefined) : undefined;
  const what = String(message || first?.message || code || error);
  const known = (text: string) => ORDER.find((name) => REASONS[name].errors?.test(text) === true);
  const name = (code === undefined ? undefined : known(String(code))) ?? known(what) ?? "unknown";
  return reason(name, plain(what));
};

/** What answered in place of a relay. `type`, `location`: headers. */
export const reasonOfAnswer = (
  status: number,
  type: string | null | undefined,
  location: string | null | undefined,
): Reason => {
  if (typeof location === "string" && status >= 300 && status < 400) {
    return reason("redirected", `this address points to ${location.slice(0, 200)}`);
  }
  const kind = type?.split(";")[0]?.slice(0, 80) || "nothing";
  const what = `this address answered ${status} with ${kind}, unlike a relay`;
  return reason(status >= 502 && status <= 504 ? "gateway" : "not_a_relay", what);
};
