/**
 * The way to a relay on Node: directly, or through the HTTP proxy that the environment names. REST
 * and WebSockets take the same way, always by CONNECT: many proxies pass an upgrade in no other.
 */
import { Agent as HttpAgent, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { BlockList, isIP, isIPv6 } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { loginOf } from "./login.ts";

/** A proxy that takes longer is away. */
const CONNECT_LIMIT_MS = 20_000;
/**
 * A socket's option: milliseconds for each address of a host that has several. Node's own quarter
 * of a second is too short for satellites and GPRS: IPv4 would be given up, and IPv6 not exist.
 */
export const ADDRESS_TIMEOUT = { autoSelectFamilyAttemptTimeout: 2500 };
/** As of Node's own agents: a connection without a request is kept for this long. */
const IDLE_MS = 5_000;

/**
 * `http://[USER:PASSWORD@]HOST:PORT` for every address, this machine's own included; null: none;
 * undefined: what the environment says.
 */
export type ProxySetting = string | null | undefined;

export interface Proxy {
  /** Without credentials: this may be shown. */
  readonly name: string;
  readonly isSecure: boolean;
  readonly host: string;
  readonly port: number;
  /** The value of `Proxy-Authorization`; null: none. */
  readonly authorization: string | null;
}

/** Whether what an address names is reached by TLS. */
const isSecureUrl = ({ protocol }: URL): boolean => protocol === "https:" || protocol === "wss:";

type Environment = { readonly [name: string]: string | undefined };

/** A proxy's own failure; REASONS has the codes. The message contains no credentials. */
class ProxyError extends Error {
  readonly code: string;

  constructor(code: string, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

const bare = (host: string): string => host.replace(/^\[|\]$/g, "").replace(/\.$/, "");

const readProxy = (text: string, from: string): Proxy => {
  let url: URL;
  try {
    url = new URL(/^[a-z0-9.+-]+:\/\//i.test(text) ? text : `http://${text}`);
  } catch {
    // Not with the error, which quotes the text and so the credentials.
    throw new ProxyError("PROXY_SETTING", `${from} does not name a proxy`);
  }
  const { protocol, hostname } = url;
  const isSecure = protocol === "https:";
  if (!isSecure && protocol !== "http:") {
    throw new ProxyError(
      "PROXY_SETTING",
      `${from} names a ${protocol}// proxy, which is not known`,
    );
  }
  const port = Number(url.port || (isSecure ? 443 : 80));
  const { user, password } = loginOf(url);
  const credentials = Buffer.from(`${user}:${password}`).toString("base64");
  return {
    name: `${hostname}:${port}`,
    isSecure,
    host: bare(hostname),
    port,
    authorization: user === "" && password === "" ? null : `Basic ${credentials}`,
  };
};

/** Nothing that listens on this machine alone can be reached by way of another. */
const isLoopback = (host: string): boolean =>
  /^(.*\.)?localhost$/.test(host) || /^127\.\d+\.\d+\.\d+$/.test(host) || host === "::1";

const isInRange = (host: string, range: string): boolean => {
  const [network = "", bits = ""] = range.split("/");
  const family = isIP(network);
  if (family === 0 || family !== isIP(host) || !/^\d{1,3}$/.test(bits)) return false;
  const list = new BlockList();
  const type = family === 6 ? "ipv6" : "ipv4";
  try {
    list.addSubnet(network, Number(bits), type);
  } catch {
    return false;
  }
  return list.check(host, type);
};

/** One entry of NO_PROXY: `*`, an address, a range, or a domain with all below it, and a port. */
const exempts = (entry: string, host: string, port: string): boolean => {
  if (entry === "*") return true;
  if (entry.includes("/")) return isInRange(host, entry);
  const [, name = entry, itsPort] = (isIPv6(entry) ? null : /^(.*):(\d+)$/.exec(entry)) ?? [];
  if (itsPort !== undefined && itsPort !== port) return false;
  const domain = bare(name.replace(/^\*?\./, ""));
  // One address has several spellings.
  if (isIPv6(domain)) return isInRange(host, `${domain}/128`);
  return domain !== "" && (host === domain || (isIP(host) === 0 && host.endsWith(`.${domain}`)));
};

/** The lower-case name wins, as for curl and Node. */
const read = (environment: Environment, name: string): readonly [string, string] | null => {
  for (const key of [name.toLowerCase(), name]) {
    const value = environment[key]?.trim();
    // In a CGI program this is a header that its caller chose.
    const isForeign = key === "HTTP_PROXY" && environment.REQUEST_METHOD !== undefined;
    if (value !== undefined && value !== "" && !isForeign) return [value, key];
  }
  return null;
};

/**
 * The proxy on the way to an http(s) or ws(s) address; null: none. Throws a ProxyError if the
 * setting cannot be read.
 */
export const proxyFor = (
  url: URL,
  setting: ProxySetting,
  environment: Environment = process.env,
): Proxy | null => {
  if (setting === null) return null;
  if (setting !== undefined) return readProxy(setting, "the option `proxy`");
  const host = bare(url.hostname).toLowerCase();
  if (isLoopback(host)) return null;
  const isSecure = isSecureUrl(url);
  const found =
    read(environment, isSecure ? "HTTPS_PROXY" : "HTTP_PROXY") ?? read(environment, "ALL_PROXY");
  if (found === null) return null;
  const port = url.port || (isSecure ? "443" : "80");
  const entries = (read(environment, "NO_PROXY")?.[0] ?? "").toLowerCase().split(/[\s,]+/);
  if (entries.some((entry) => exempts(entry, host, port))) return null;
  return readProxy(...found);
};

/** Connects to `host` by way of the proxy. `ended`: nobody waits for it any more. */
export const openTunnel = (
  proxy: Proxy,
  host: string,
  port: number,
  ended?: AbortSignal,
): Promise<Duplex> =>
  new Promise((resolve, reject) => {
    const target = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
    const request = (proxy.isSecure ? httpsRequest : httpRequest)({
      host: proxy.host,
      port: proxy.port,
      method: "CONNECT",
      path: target,
      agent: false,
      timeout: CONNECT_LIMIT_MS,
      ...ADDRESS_TIMEOUT,
      ...(ended === undefined ? {} : { signal: ended }),
      headers: {
        host: target,
        ...(proxy.authorization === null ? {} : { "proxy-authorization": proxy.authorization }),
      },
    });
    request.once("connect", ({ statusCode = 0 }, socket, head) => {
      if (statusCode >= 200 && statusCode < 300) {
        // Only for the answer: a link may be silent for longer.
        socket.setTimeout(0);
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
        return;
      }
      socket.destroy();
      const text = `the proxy ${proxy.name} answered ${statusCode} for ${target}`;
      reject(new ProxyError("PROXY_REFUSES", text));
    });
    request.once("timeout", () => request.destroy(new Error("no answer in time")));
    request.once("error", (error: Error) => {
      const { code, message } = error as NodeJS.ErrnoException;
      const text = `the proxy ${proxy.name} cannot be reached: ${message || code}`;
      reject(new ProxyError("PROXY_AWAY", text, error));
    });
    request.end();
  });

/**
 * An agent of node:http(s) for an address whose way leads through a proxy; undefined: the default
 * one. A setting that cannot be read fails at the first connection, as the others do. A request
 * gives its signal as the option `ended` too: Node tells agents nothing of `signal`, so a request
 * that had ended would wait for the tunnel, and the tunnel would stay.
 */
export const agentFor = (url: URL, setting: ProxySetting): HttpAgent | undefined => {
  let way: (ended: AbortSignal | undefined) => Promise<Duplex>;
  const isSecure = isSecureUrl(url);
  const port = Number(url.port || (isSecure ? 443 : 80));
  const host = bare(url.hostname);
  try {
    const proxy = proxyFor(url, setting);
    if (proxy === null) return undefined;
    way = (ended) => openTunnel(proxy, host, port, ended);
  } catch (error) {
    way = () => Promise.reject(error);
  }
  const agent = new (isSecure ? HttpsAgent : HttpAgent)({ keepAlive: true, timeout: IDLE_MS });
  agent.createConnection = (options, callback) => {
    way((options as { ended?: AbortSignal }).ended).then(
      (socket) => {
        const servername = isIP(host) === 0 ? { servername: host } : {};
        const link = isSecure
          ? connectTls({ ...(options as object), ...servername, host, socket })
          : socket;
        callback?.(null, link);
      },
      (error: Error) => callback?.(error, undefined as unknown as Duplex),
    );
    return undefined as unknown as Duplex;
  };
  return agent;
};
