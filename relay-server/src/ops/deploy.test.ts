/**
 * Checks the files of `deploy/` and docs/operations.md against a running relay: each flag, port,
 * probe, metric and label in them exists.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttp, type RequestListener } from "node:http";
import { createServer as createHttps } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { MASTER_KEY_VARIABLE } from "../control/master-key.ts";
import { CONFIG_KEYS, flagOf, variableOf } from "../settings/config.ts";
import { POSTGRES, postgres } from "../store/testing/engines.ts";
import { type FlakyNetwork, flakyNetwork } from "../store/testing/flaky-network.ts";
import { makeCertificates, noOpenssl } from "../testing/certificates.ts";
import { type Node, noCluster, startCluster, type TestCluster } from "../testing/nodes.ts";

const DEPLOY = join(import.meta.dirname, "../../deploy");
const MAIN = join(import.meta.dirname, "../main.ts");
/** What a cluster node needs in addition to --drain-delay (docs/cluster.md, "Stopping"). */
const DRAIN_S = 30;

const read = (name: string): string => readFileSync(join(DEPLOY, name), "utf8");
const readDocs = (name: string): string => read(`../../docs/${name}`);
const OPERATORS = ["operations.md", "cluster.md", "limits.md", "keys-and-backups.md"];

// biome-ignore lint/suspicious/noExplicitAny: documents of other people's formats
type Document = any;

const compose: Document = parse(read("compose.yaml"), { merge: true });
const resources: Document[] = parseAllDocuments(read("kubernetes.yaml")).map((one) => {
  expect(one.errors).toEqual([]);
  return one.toJS();
});
const ofKind = (kind: string): Document => resources.find((one) => one.kind === kind);
const pod = ofKind("Deployment").spec.template.spec;
const container = pod.containers[0];
const relays = ["relay-1", "relay-2"].map((name) => compose.services[name]);

const instruction = (name: string): string =>
  new RegExp(`^${name} (.*)$`, "m").exec(read("Containerfile"))?.[1] as string;
const imagePorts = instruction("EXPOSE").split(" ").map(Number);

test("the manifests set nothing that the relay does not know", () => {
  const help = execFileSync(process.execPath, [MAIN, "start", "--help"], { encoding: "utf8" });
  const known = [...help.matchAll(/BLINDRELAY_\w+/g)].map(([name]) => name);
  const used = ["compose.yaml", "kubernetes.yaml", "Containerfile", "blindrelay.service"].flatMap(
    (file) => [...read(file).matchAll(/BLINDRELAY_\w+/g)].map(([name]) => name),
  );
  expect(used).toContain("BLINDRELAY_BUS");
  expect(used.filter((name) => ![...known, MASTER_KEY_VARIABLE].includes(name))).toEqual([]);
  const flags = ["compose.yaml", "kubernetes.yaml", "alerts.yaml", "dashboard.json"].flatMap(
    (file) => [...read(file).matchAll(/(?<=[ `])--[a-z][a-z-]+/g)].map(([flag]) => flag),
  );
  expect(flags.filter((flag) => !help.includes(`  ${flag} <`))).toEqual([]);
});

test("the pages for operators name only settings and flags that exist", () => {
  const text = OPERATORS.map(readDocs).join("\n");
  const commands = readDocs("commands.md"); // which another test compares with each --help
  const settings = [...text.matchAll(/BLINDRELAY_[A-Z_]+/g)].map(([name]) => name);
  // Not settings of `start`: the path of its file, and what two commands use.
  const others = ["BLINDRELAY_CONFIG", "BLINDRELAY_URL", "BLINDRELAY_NEW_MASTER_KEY"];
  const known = [...CONFIG_KEYS.map(variableOf), MASTER_KEY_VARIABLE, ...others];
  expect(settings).toContain("BLINDRELAY_STORE");
  expect(settings.filter((name) => !known.includes(name))).toEqual([]);
  // In back quotes, with their values; flags of other programs follow their names.
  const flags = [...text.matchAll(/`(--[a-z][a-z-]+)/g)].map(([, flag]) => flag as string);
  const flagsKnown = [...CONFIG_KEYS.map(flagOf), ...(commands.match(/--[a-z][a-z-]+/g) ?? [])];
  expect(flags).toContain("--drain-delay");
  expect(flags.filter((flag) => !flagsKnown.includes(flag))).toEqual([]);
});

// teleproxy/teleproxy#38, filebrowser/filebrowser#1487
test.skipIf(noOpenssl)(
  "the image's health check asks where the relay listens, over http or https",
  async () => {
    const [, ...probe] = JSON.parse(/^ {2}CMD (.*)$/m.exec(read("Containerfile"))?.[1] as string);
    const exitOf = async (environment: Record<string, string>) => {
      const env = { PATH: process.env.PATH ?? "", ...environment };
      const child = spawn(process.execPath, probe, { env, stdio: "ignore" });
      return (await once(child, "exit"))[0];
    };
    const folder = mkdtempSync(join(tmpdir(), "blindrelay-probe-"));
    const { cert, key } = makeCertificates(folder, "relay");
    const answer: RequestListener = ({ url }, response) =>
      response.writeHead(url === "/health/live" ? 200 : 404).end();
    const pair = { cert: readFileSync(cert), key: readFileSync(key) };
    const servers = [createHttp(answer), createHttps(pair, answer)] as const;
    try {
      const [plain, secure] = await Promise.all(
        servers.map(async (server) => {
          await once(server.listen(0, "127.0.0.1"), "listening");
          return String((server.address() as AddressInfo).port);
        }),
      );
      const port = { BLINDRELAY_PORT: plain as string };
      const tls = { BLINDRELAY_PORT: secure as string, BLINDRELAY_TLS_CERT: cert };
      expect(await Promise.all([port, tls].map(exitOf))).toEqual([0, 0]);
      expect(await exitOf({ ...port, BLINDRELAY_TLS_CERT: cert })).toBe(1);
    } finally {
      for (const server of servers) server.close();
      rmSync(folder, { recursive: true });
    }
  },
);

test("the manifests agree with the image's entry point, user, ports and data folder", () => {
  expect(instruction("ENTRYPOINT")).toContain('"/app/relay-server/src/main.ts"]');
  const command = JSON.parse(instruction("CMD"));
  expect(container.command).toBeUndefined();
  expect(container.args).toEqual(command);
  for (const relay of relays) {
    expect([relay.entrypoint, relay.command]).toEqual([undefined, undefined]);
    expect(relay.build.dockerfile).toBe("relay-server/deploy/Containerfile");
    expect(relay.tmpfs[0]).toMatch(new RegExp(`^${instruction("VOLUME")}:`));
  }
  expect(container.volumeMounts[0].mountPath).toBe(instruction("VOLUME"));
  // The image's user is `node`, which has number 1000 in the official image.
  expect([instruction("USER"), pod.securityContext.runAsUser]).toEqual(["node", 1000]);
  const ports = container.ports.map((port: Document) => port.containerPort);
  expect(ports).toEqual(imagePorts);
  const annotations = ofKind("Deployment").spec.template.metadata.annotations;
  expect(Number(annotations["prometheus.io/port"])).toBe(imagePorts[1]);
  const named = container.ports.map((port: Document) => port.name);
  const { livenessProbe, readinessProbe } = container;
  for (const port of [
    livenessProbe.httpGet.port,
    readinessProbe.httpGet.port,
    ofKind("Service").spec.ports[0].targetPort,
  ]) {
    expect(named).toContain(port);
  }
  const upstreams = [...read("Caddyfile").matchAll(/(relay-\d):(\d+)/g)];
  expect(upstreams.map(([, name]) => name)).toEqual(["relay-1", "relay-2"]);
  expect(new Set(upstreams.map(([, , port]) => Number(port)))).toEqual(new Set([imagePorts[0]]));
});

test("no package of the image brings a Node of its own", () => {
  const { importers } = parse(read("../../pnpm-lock.yaml"));
  const folders = [...read("Containerfile").matchAll(/^COPY ([\w-]+) \.\/\1$/gm)].map(
    ([, it]) => it,
  );
  expect(folders).toEqual(["protocol", "relay-server", "agent-sdk", "client-sdk", "console"]);
  const names = [".", ...(folders as string[])].flatMap((folder) => {
    const { dependencies, devDependencies, optionalDependencies } = importers[folder];
    return Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies });
  });
  expect(names).toContain("fastify");
  expect(names.filter((name) => /^node-(bin|darwin|linux|win)-?/.test(name))).toEqual([]);
});

test("a relay has the time to drain before it is killed", () => {
  const setting = (name: string) =>
    container.env.find((one: Document) => one.name === name)?.value as string;
  const preStop = Number(container.lifecycle.preStop.exec.command[1]);
  const drainDelay = Number(setting("BLINDRELAY_DRAIN_DELAY"));
  expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(preStop + drainDelay + DRAIN_S);
  const { periodSeconds, failureThreshold } = container.readinessProbe;
  expect(preStop).toBeGreaterThan(periodSeconds * failureThreshold);
  const interval = Number(/health_interval (\d+)s/.exec(read("Caddyfile"))?.[1]);
  for (const relay of relays) {
    const delay = Number(relay.environment.BLINDRELAY_DRAIN_DELAY);
    expect(Number.parseInt(relay.stop_grace_period, 10)).toBeGreaterThanOrEqual(delay + DRAIN_S);
    expect(delay).toBeGreaterThan(2 * interval);
  }
  const stop = Number(/^TimeoutStopSec=(\d+)$/m.exec(read("blindrelay.service"))?.[1]);
  expect(stop).toBeGreaterThan(DRAIN_S);
});

test("every place that limits memory has the limits of docs/limits.md", () => {
  const text = readDocs("limits.md").replaceAll("\n", " ");
  const [, arenas, heapMb] =
    /`(MALLOC_ARENA_MAX=\d+)` and `NODE_OPTIONS=--max-old-space-size=(\d+)`/.exec(text) ?? [];
  const gb = Number(/`MemoryMax`, is (\d+) GB/.exec(text)?.[1]);
  expect(Number(heapMb)).toBe((gb * 1024) / 2); // as the text says
  for (const file of ["blindrelay.service", "Containerfile"]) {
    expect(read(file)).toContain(arenas);
    expect(read(file)).toMatch(new RegExp(`NODE_OPTIONS=--max-old-space-size=${heapMb}\\b`));
  }
  expect(read("blindrelay.service")).toMatch(new RegExp(`^MemoryMax=${gb}G$`, "m"));
  expect(container.resources.limits.memory).toBe(`${gb}Gi`);
  for (const relay of relays) expect(relay.mem_limit).toBe(`${gb}g`);
  expect(read("alerts.yaml")).toContain(`its memory limit of ${gb} GB`);
});

test("no secret is in the manifests", () => {
  const literals = container.env.filter((one: Document) => one.value !== undefined);
  const names = literals.map((one: Document) => one.name);
  for (const name of [MASTER_KEY_VARIABLE, "BLINDRELAY_STORE", "BLINDRELAY_BUS"]) {
    expect(names).not.toContain(name);
    expect(container.env.map((one: Document) => one.name)).toContain(name);
  }
  for (const relay of relays) {
    expect(relay.environment[MASTER_KEY_VARIABLE]).toMatch(/^\$\{/);
    expect(relay.environment.BLINDRELAY_STORE).toContain("${POSTGRES_PASSWORD:?");
    expect(relay.environment.BLINDRELAY_BUS).toContain("${NATS_TOKEN:?");
  }
});

test("the image leaves out what git does: the secrets that the commands write", () => {
  const ignored = read("Containerfile.dockerignore").split("\n");
  const [, secrets = ""] = read("../../.gitignore").split("nobody should publish");
  const patterns = secrets.split("\n").filter((line) => /^[.*\w]/.test(line));
  expect(patterns).toContain(".env");
  expect(ignored).toEqual(expect.arrayContaining(patterns.map((pattern) => `**/${pattern}`)));
});

test("one selector finds the pods, and not all of them may be evicted at once", () => {
  const { labels } = ofKind("Deployment").spec.template.metadata;
  expect(ofKind("Service").spec.selector).toEqual(labels);
  expect(ofKind("PodDisruptionBudget").spec.selector.matchLabels).toEqual(labels);
  expect(ofKind("PodDisruptionBudget").spec.maxUnavailable).toBeLessThan(
    ofKind("Deployment").spec.replicas,
  );
  expect(ofKind("Deployment").spec.strategy.rollingUpdate.maxUnavailable).toBe(0);
});

/** Each metric with its labels and their values, from a scrape. */
const seriesOf = (text: string): Map<string, Map<string, Set<string>>> => {
  const all = new Map<string, Map<string, Set<string>>>();
  for (const line of text.split("\n")) {
    const [, name, labels = ""] = /^([a-z0-9_]+)(?:\{(.*)\})? /.exec(line) ?? [];
    if (name === undefined) continue;
    const seen = all.get(name) ?? new Map<string, Set<string>>();
    all.set(name, seen);
    for (const [, label, value] of labels.matchAll(/(\w+)="([^"]*)"/g)) {
      const values = seen.get(label as string) ?? new Set<string>();
      seen.set(label as string, values.add(value as string));
    }
  }
  return all;
};

/** Labels that Prometheus adds, and its own metric. */
const SCRAPED = ["job", "instance"];
const WORDS = new Set(["offset"]);

/** The metrics in an expression, the conditions on their labels, and the labels it groups by. */
const askedBy = (expression: string) => {
  const selectors = [...expression.matchAll(/([a-z0-9_]+)\{([^}]*)\}/g)].flatMap(
    ([, metric = "", matchers = ""]) =>
      [...matchers.matchAll(/(\w+)=(~?)"([^"]*)"/g)].map(([, label = "", regex, value = ""]) => ({
        metric,
        label,
        values: regex === "~" ? value.split("|") : [value],
      })),
  );
  const bare = expression.replaceAll(/\{[^}]*\}|\[[^\]]*\]|"[^"]*"/g, " ");
  const groups = [...bare.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, names = ""]) =>
    names.split(",").map((name) => name.trim()),
  );
  const ungrouped = bare.replaceAll(/\b(?:by|on) \([^)]*\)/g, " ");
  const names = [...ungrouped.matchAll(/\b[a-z_][a-z0-9_]*\b(?! *\()/g)].map(([name]) => name);
  const metrics = [...new Set(names)].filter((name) => !WORDS.has(name));
  return { selectors, groups, metrics };
};

const alerts: Document[] = parse(read("alerts.yaml")).groups.flatMap((one: Document) => one.rules);
const panels: Document[] = JSON.parse(read("dashboard.json")).panels;
const expressions: [string, string][] = [
  ...alerts.map((one): [string, string] => [one.alert, one.expr]),
  ...panels.flatMap(({ title, targets = [] }): [string, string][] =>
    targets.map((one: Document) => [`${title} (dashboard)`, one.expr]),
  ),
];

test("each panel has its own place, and each alert says what to do", () => {
  const places = panels.map(({ gridPos: { x, y } }) => `${x} ${y}`);
  expect(new Set(places).size).toBe(panels.length);
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  for (const { alert, annotations, labels } of alerts) {
    expect([alert, annotations.action.length > 20]).toEqual([alert, true]);
    expect(["critical", "warning"]).toContain(labels.severity);
  }
});

test.skipIf(spawnSync("promtool", ["--version"]).error !== undefined)(
  "Prometheus accepts the alerts",
  () => {
    execFileSync("promtool", ["check", "rules", join(DEPLOY, "alerts.yaml")]);
  },
);

describe.skipIf(noCluster || postgres().skipped)("a relay of a cluster", () => {
  let network: FlakyNetwork;
  let cluster: TestCluster;
  let scraped: ReturnType<typeof seriesOf>;
  const node = () => cluster.nodes[1] as Node;

  beforeAll(async () => {
    network = await flakyNetwork(POSTGRES);
    cluster = await startCluster(1);
    // Makes the second node's connection to PostgreSQL fail.
    const store = new URL(cluster.store);
    store.host = `127.0.0.1:${network.port}`;
    await cluster.add({ store: String(store) });
    // A message that is not forwarded, so that its reason becomes a label.
    const client = await node().client({ api_token: cluster.account });
    client.send({ type: "relay", agent_id: "nobody", request_id: "1", payload: "x" });
    await client.next();
    client.socket.terminate(); // otherwise a node that shuts down would wait for it
    scraped = seriesOf(await (await fetch(node().server.metricsUrl)).text());
  });
  afterAll(async () => {
    network?.heal();
    await cluster?.end();
    await network?.close();
  });

  test.each(expressions)("has each metric and label of %s", (_name, expression) => {
    const { selectors, groups, metrics } = askedBy(expression);
    expect(metrics.length).toBeGreaterThan(0);
    expect(metrics.filter((name) => name !== "up" && !scraped.has(name))).toEqual([]);
    const labels = metrics.flatMap((name) => [...(scraped.get(name)?.keys() ?? [])]);
    expect(groups.filter((name) => ![...SCRAPED, ...labels].includes(name))).toEqual([]);
    for (const { metric, label, values } of selectors) {
      if (SCRAPED.includes(label)) continue;
      const known = [...(scraped.get(metric)?.get(label) ?? [])];
      expect([label, values.filter((value) => !known.includes(value))]).toEqual([label, []]);
    }
  });

  test.each([...OPERATORS, "scaling.md"])("has each metric of docs/%s", (name) => {
    const named = [...readDocs(name).matchAll(/blindrelay_[a-z_]+[a-z]\b/g)].map(([each]) => each);
    const scrapedNames = [...scraped.keys()];
    const isThere = (each: string) =>
      scrapedNames.some((one) => one === each || one === `${each}_bucket`);
    expect(named.filter((each) => !isThere(each))).toEqual([]);
  });

  test("is not killed while its database is unavailable: it is live, but not ready", async () => {
    const paths = [
      container.livenessProbe.httpGet.path as string,
      /path: '(\/[\w/]+)'/.exec(read("Containerfile"))?.[1] as string,
    ];
    const readyPaths = [
      container.readinessProbe.httpGet.path as string,
      /health_uri (\S+)/.exec(read("Caddyfile"))?.[1] as string,
    ];
    const status = async (path: string) => (await fetch(`${node().server.url}${path}`)).status;
    const all = (list: string[]) => Promise.all(list.map(status));
    const ready = () => all(readyPaths);
    await expect.poll(ready).toEqual([200, 200]);
    for (const fail of ["refuse", "freeze"] as const) {
      network[fail]();
      await expect.poll(ready).toEqual([503, 503]);
      expect(await all(paths)).toEqual([200, 200]);
      expect(await (await fetch(node().server.metricsUrl)).text()).toContain(
        "blindrelay_store_ready 0",
      );
      network.heal();
      await expect.poll(ready).toEqual([200, 200]);
      expect(await all(paths)).toEqual([200, 200]);
    }
  });
});

describe("the systemd units of relay and bridge", () => {
  const UNITS = {
    relay: join(DEPLOY, "blindrelay.service"),
    bridge: join(DEPLOY, "../../tools/systemd/blindrelay-bridge.service"),
  };
  const setting = (path: string, name: string): string =>
    new RegExp(`^${name}=(.*)$`, "m").exec(readFileSync(path, "utf8"))?.[1] ?? "";

  // juspay/olai#280, LamantinAI/kaeru#3
  test("are started again also after a SIGTERM of somebody else", () => {
    for (const unit of [UNITS.relay, UNITS.bridge]) expect(setting(unit, "Restart")).toBe("always");
  });

  test("have users and folders of their own: the bridge cannot read the relay's key", () => {
    const [relay, bridge] = [UNITS.relay, UNITS.bridge];
    for (const name of ["User", "StateDirectory"]) {
      expect([name, setting(bridge, name)]).toEqual([name, "blindrelay-bridge"]);
      expect([name, setting(relay, name)]).toEqual([name, "blindrelay"]);
    }
    expect(setting(relay, "StateDirectoryMode")).toBe("0700");
    expect([setting(bridge, "Group"), setting(bridge, "SupplementaryGroups")]).toEqual([
      "",
      "dialout",
    ]);
    expect(setting(bridge, "InaccessiblePaths")).toContain("/var/lib/blindrelay");
    expect(readFileSync(bridge, "utf8")).not.toContain("/etc/blindrelay/");
  });

  test("start nothing before the service, whose exit code would not keep it from restarts", () => {
    for (const path of Object.values(UNITS)) {
      expect(setting(path, "RestartPreventExitStatus")).toMatch(/^2 5/);
      expect(setting(path, "ExecStartPre")).toBe("");
    }
  });

  test("name the users that their installation makes", () => {
    const made = [
      ...readFileSync(UNITS.bridge, "utf8").matchAll(/useradd .* (\S+)$/gm),
      ...readDocs("operations.md").matchAll(/useradd .* (\S+)$/gm),
    ];
    expect(made.map(([, name]) => name)).toEqual(["blindrelay-bridge", "blindrelay"]);
  });

  test.skipIf(spawnSync("systemd-analyze", ["--version"]).error !== undefined)(
    "are accepted by systemd (needs systemd-analyze)",
    () => {
      const folder = mkdtempSync(join(tmpdir(), "blindrelay-units-"));
      try {
        for (const path of Object.values(UNITS)) {
          // The program that they start is not installed here.
          const unit = readFileSync(path, "utf8").replaceAll(/(?<==)\/usr\/bin\/\S+/g, "/bin/true");
          const copy = join(folder, basename(path));
          writeFileSync(copy, unit);
          const { status, stderr } = spawnSync("systemd-analyze", ["verify", copy], {
            encoding: "utf8",
          });
          const ours = stderr.split("\n").filter((line) => line.includes(basename(path)));
          expect([status, ours]).toEqual([0, []]);
        }
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );
});
