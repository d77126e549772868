/**
 * A relay that cannot be reached, in each way that the table of reasons knows, over real sockets:
 * REST, `connect` and an agent say the same, with the same fix.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, connect as connectTcp, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls from "node:tls";
import { startAgent } from "@blindrelay/agent-sdk/node";
import { connect } from "@blindrelay/client-sdk/node";
import { Rest } from "@blindrelay/client-sdk/rest";
import { makeToken } from "@blindrelay/protocol";
import { REASONS, type ReasonName } from "@blindrelay/protocol/net";
import { freePort } from "@blindrelay/protocol/testing/free-port";
import { noOpenssl } from "@blindrelay/relay-server/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "blindrelay-unreachable-"));
const path = (name: string): string => join(folder, name);
const servers: Server[] = [];
const authorities = tls.getCACertificates("default");

const listen = async (server: Server): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  servers.push(server);
  return (server.address() as AddressInfo).port;
};

/** A web server that answers requests and upgrades alike. */
const answering = (status: number, headers: Record<string, string>, body: string): Server => {
  const answer: RequestListener = (_request, response) => {
    response.writeHead(status, headers).end(body);
  };
  return createHttpServer({ shouldUpgradeCallback: () => false }, answer);
};

/** A proxy that lets nothing through. */
const refusing = (status: number): Server =>
  createHttpServer().on("connect", (_request, socket) => {
    socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
  });

const openssl = (...args: string[]) =>
  execFileSync("openssl", args, { stdio: "ignore", cwd: folder });

/** A TLS server whose certificate is valid from `start` to `end` (YYMMDD) for `name`. */
const secure = (start: string, end: string, name: string): Server => {
  const id = `${start}-${name.replace(/\W/g, "")}`;
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  openssl("req", ...key, "-subj", "/CN=relay", "-keyout", `${id}.key`, "-out", `${id}.csr`);
  writeFileSync(path("names"), `subjectAltName=${name}\n`);
  openssl(
    ...["ca", "-batch", "-config", "ca.conf", "-in", `${id}.csr`, "-out", `${id}.pem`, "-notext"],
    ...["-startdate", `${start}000000Z`, "-enddate", `${end}000000Z`, "-extfile", "names"],
  );
  const files = { key: readFileSync(path(`${id}.key`)), cert: readFileSync(path(`${id}.pem`)) };
  return createHttpsServer(files, (_request, response) => response.end("hello"));
};

const makeAuthority = (): void => {
  writeFileSync(
    path("ca.conf"),
    `[ca]\ndefault_ca=own\n[own]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ncertificate=ca.pem
private_key=ca.key\ndefault_md=sha256\npolicy=any\nunique_subject=no\n[any]\ncommonName=supplied\n`,
  );
  writeFileSync(path("index"), "");
  writeFileSync(path("serial"), "01\n");
  openssl(
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
    ...["-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"],
  );
};

const trust = (isTrusted: boolean): void =>
  tls.setDefaultCACertificates(
    isTrusted ? [...authorities, readFileSync(path("ca.pem"), "utf8")] : authorities,
  );

beforeAll(() => {
  if (!noOpenssl) makeAuthority();
});
afterAll(() => {
  tls.setDefaultCACertificates(authorities);
  for (const server of servers) server.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Place {
  readonly url: string;
  readonly proxy?: string;
  readonly isTrusted?: boolean;
}

const at = async (server: Server, scheme = "http"): Promise<Place> => ({
  url: `${scheme}://127.0.0.1:${await listen(server)}`,
});
const HERE = "IP:127.0.0.1";

/** Where each reason can be met; null: not on the machine of a test. */
const PLACES: { readonly [name in ReasonName]: (() => Promise<Place>) | null } = {
  redirected: () => at(answering(308, { location: "https://relay.example/wss" }, "")),
  gateway: () => at(answering(502, { "content-type": "text/html" }, "<h1>Bad Gateway</h1>")),
  not_a_relay: () => at(answering(200, { "content-type": "text/html" }, "<h1>hello</h1>")),
  unknown_host: async () => ({ url: "http://nobody.invalid" }),
  refused: async () => ({ url: `http://127.0.0.1:${await freePort()}` }),
  no_route: null,
  clock: async () => ({
    ...(await at(secure("400101", "410101", HERE), "https")),
    isTrusted: true,
  }),
  expired: async () => ({
    ...(await at(secure("200101", "210101", HERE), "https")),
    isTrusted: true,
  }),
  wrong_name: async () => ({
    ...(await at(secure("240101", "400101", "DNS:other.example"), "https")),
    isTrusted: true,
  }),
  untrusted: () => at(secure("240101", "400101", HERE), "https"),
  no_tls: () => at(answering(200, {}, "hello"), "https"),
  hung_up: () => at(secure("240201", "400101", HERE), "http"),
  proxy_refuses: async () => ({
    url: "https://relay.example",
    proxy: `http://ada:hidden@127.0.0.1:${await listen(refusing(407))}`,
  }),
  proxy_away: async () => ({
    url: "http://relay.example",
    proxy: `http://ada:hidden@127.0.0.1:${await freePort()}`,
  }),
  proxy_setting: async () => ({ url: "https://relay.example", proxy: "socks5://ada:hidden@a:1" }),
  unknown: null,
};
const NEEDS_OPENSSL: ReasonName[] = ["clock", "expired", "wrong_name", "untrusted", "hung_up"];

const bytes = (n: number): Uint8Array => new Uint8Array(32).fill(n);

const failureOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "it worked",
    (error: Error) => error.message,
  );

// rustdesk/rustdesk#11688
describe.each(Object.entries(PLACES) as [ReasonName, (() => Promise<Place>) | null][])(
  "%s",
  (name, place) => {
    it.skipIf(place === null || (noOpenssl && NEEDS_OPENSSL.includes(name)))(
      "is told by REST, connect and an agent alike, with its fix",
      async () => {
        const { url, isTrusted = false, ...given } = await (place as () => Promise<Place>)();
        const proxy = given.proxy ?? null;
        if (NEEDS_OPENSSL.includes(name)) trust(isTrusted);
        const rest = new Rest({ url, proxy });
        const said = [
          await failureOf(rest.ask("AuthConfig", "GET", "/auth/config")),
          await failureOf(connect({ url, proxy, accountToken: makeToken("account", bytes(1)) })),
        ];
        const warnings: string[] = [];
        const agent = await startAgent({
          url,
          proxy,
          agentId: "pump-7",
          relayToken: makeToken("agent", bytes(2)),
          agentToken: makeToken("e2e", bytes(3)),
          stateDir: path(name),
          program: () => undefined,
          log: (level, message) => {
            if (level === "warn" && !message.startsWith("a new state folder"))
              warnings.push(message);
          },
        });
        const tries = new Promise<string>((resolve) => {
          let count = 0;
          agent.onState(({ state, advice }) => {
            if (state === "waiting" && ++count === 2) resolve(advice ?? "");
          });
        });
        said.push(await tries);
        await agent.stop();
        for (const text of said) {
          expect(text).toContain(`; fix: ${REASONS[name].fix}`);
          expect(text).not.toMatch(/hidden|openssl|agt_|acct_/);
        }
        expect(warnings).toEqual([said[2]]);
      },
    );
  },
);

/** A tunnel to one port, whatever name is asked for. */
const tunnel = (port: number): Server =>
  createHttpServer().on("connect", (_request, socket, head) => {
    const way = connectTcp(port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      way.write(head);
      way.pipe(socket).pipe(way);
    });
    way.on("error", () => socket.destroy());
    socket.on("error", () => way.destroy()).on("close", () => way.destroy());
  });

it.skipIf(noOpenssl)("through a proxy the relay's own certificate is checked", async () => {
  trust(true);
  const port = await listen(secure("240301", "400101", "DNS:relay.example"));
  const proxy = `http://127.0.0.1:${await listen(tunnel(port))}`;
  const ask = (host: string) =>
    failureOf(new Rest({ url: `https://${host}`, proxy }).ask("User", "GET", "/account"));
  const link = (host: string) =>
    failureOf(
      connect({ url: `https://${host}`, proxy, accountToken: makeToken("account", bytes(1)) }),
    );
  for (const said of [await ask("relay.example"), await link("relay.example")]) {
    expect(said).toContain(REASONS.not_a_relay.fix); // so TLS was right
  }
  for (const said of [await ask("other.example"), await link("other.example")]) {
    expect(said).toContain(REASONS.wrong_name.fix);
  }
});
