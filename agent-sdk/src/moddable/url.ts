/** Parses a relay's address without the URL class, which a bare Moddable project lacks. */

export interface RelayAddress {
  readonly secure: boolean;
  readonly host: string;
  readonly port: number;
  readonly path: string;
}

const SCHEMES: { readonly [scheme: string]: boolean } = {
  ws: false,
  http: false,
  wss: true,
  https: true,
};

const WSS_PATH = "/wss";

/**
 * Like @blindrelay/protocol/relay-url: `ws(s)://host[:port][/path]`, or the relay's http(s) base,
 * to which /wss is added. Null for anything else.
 */
export const parseAddress = (url: string): RelayAddress | null => {
  const parts = /^([a-z]+):\/\/([^/:?#@\s]+)(?::([0-9]{1,5}))?([/?][^#\s]*)?$/.exec(url);
  if (parts === null) return null;
  const [, scheme = "", host = "", digits, path = "/"] = parts;
  if (!Object.hasOwn(SCHEMES, scheme)) return null;
  const secure = SCHEMES[scheme] as boolean;
  const port = digits === undefined ? (secure ? 443 : 80) : Number(digits);
  if (port < 1 || port > 65535) return null;
  const isBase = scheme.startsWith("http") || path === "/";
  const below = path.endsWith("/") ? path.slice(0, -1) : path;
  return { secure, host, port, path: isBase && !path.endsWith(WSS_PATH) ? below + WSS_PATH : path };
};
