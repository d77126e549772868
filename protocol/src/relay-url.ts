/** The address of a relay's WebSocket, from the relay's address as users write it. */
import { WSS_PATH } from "./spec.ts";

/**
 * `http(s)://host[/base]` becomes `ws(s)://host[/base]/wss`; a `ws(s)` address with a path is
 * unchanged, but for what follows a `#`. Throws a TypeError for anything else. For runtimes that
 * have the URL class.
 */
export const relayUrl = (text: string): string => {
  let url: URL;
  try {
    url = new URL(text);
  } catch (cause) {
    throw new TypeError(`not a URL: ${text}`, { cause });
  }
  if (!/^(http|ws)s?:$/.test(url.protocol)) {
    throw new TypeError(`expected an http, https, ws or wss URL, got ${text}`);
  }
  const isBase = url.protocol.startsWith("http") || url.pathname === "/";
  if (isBase && !url.pathname.endsWith(WSS_PATH)) {
    url.pathname = url.pathname.replace(/(?<!\/)\/+$/, "") + WSS_PATH;
  }
  // Of a page of the console, copied from a browser.
  if (url.protocol.startsWith("http")) url.search = "";
  url.hash = "";
  url.protocol = url.protocol.replace("http", "ws");
  return url.href;
};

/** The base of the same relay's REST interface, `http(s)://host[/base]`. Throws as `relayUrl`. */
export const restBase = (text: string): string =>
  relayUrl(text)
    .replace(/^ws/, "http")
    .replace(/\/wss$/, "");
