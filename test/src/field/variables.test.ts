/** Variables that Kubernetes, compose files and CI set, none of which the user meant. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";

const RELAY = join(fileURLToPath(import.meta.resolve("@blindrelay/relay-server")), "../main.ts");
const MANIFEST = join(RELAY, "../../deploy/kubernetes.yaml");

const folderOf = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-field-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

/** What the relay makes of its settings, as `start --print-config` prints it. */
const configWith = (variables: Record<string, string>): Record<string, unknown> => {
  const env = { PATH: process.env.PATH ?? "", HOME: "/nonexistent", ...variables };
  const args = [RELAY, "start", "--print-config"];
  return JSON.parse(execFileSync(process.execPath, args, { env, encoding: "utf8" }));
};

/** The variables that Kubernetes puts into each pod of a namespace for one of its Services. */
const serviceVariables = (name: string, ports: readonly number[]): Record<string, string> => {
  const prefix = name.toUpperCase().replaceAll("-", "_");
  const address = "10.96.12.3";
  const [first = 80] = ports;
  const entries: [string, string][] = [
    [`${prefix}_SERVICE_HOST`, address],
    [`${prefix}_SERVICE_PORT`, String(first)],
    [`${prefix}_PORT`, `tcp://${address}:${first}`],
    ...ports.flatMap((port): [string, string][] => [
      [`${prefix}_PORT_${port}_TCP`, `tcp://${address}:${port}`],
      [`${prefix}_PORT_${port}_TCP_PROTO`, "tcp"],
      [`${prefix}_PORT_${port}_TCP_PORT`, String(port)],
      [`${prefix}_PORT_${port}_TCP_ADDR`, address],
    ]),
  ];
  return Object.fromEntries(entries);
};

// ScreamingFace/screamingface#538, elastic/cloud-on-k8s#1987
test("a pod starts beside the Services of the relay's own manifest", () => {
  const parts = readFileSync(MANIFEST, "utf8").split(/^---$/m);
  const services = parts.filter((part) => /^kind: Service$/m.test(part));
  expect(services.length).toBeGreaterThan(0);
  const plain = configWith({});
  for (const service of services) {
    const [, name = ""] = /^ {2}name: (\S+)$/m.exec(service) ?? [];
    const ports = [...service.matchAll(/\bport: (\d+)/g)].map(([, port]) => Number(port));
    expect([name, ports]).not.toEqual(["", []]);
    expect(configWith(serviceVariables(name, ports))).toEqual(plain);
  }
  expect(configWith(serviceVariables("blindrelay-metrics", [9090]))).toEqual(plain);
  const deployment = parts.find((part) => /^kind: Deployment$/m.test(part));
  expect(deployment).toMatch(/^ {6}enableServiceLinks: false$/m);
});

// docker/compose#3768, docker/compose#5829
test("an empty variable counts as unset, whichever setting it is for", () => {
  const help = execFileSync(process.execPath, [RELAY, "start", "--help"], { encoding: "utf8" });
  const names = [...new Set([...help.matchAll(/BLINDRELAY_[A-Z_]+/g)].map(([name]) => name))];
  expect(names.length).toBeGreaterThan(30);
  const empty = Object.fromEntries(names.map((name) => [name, ""]));
  expect(configWith({ ...empty, BLINDRELAY_MASTER_KEY: "" })).toEqual(configWith({}));
});

// docker/docs#123, wardenenv/warden#380
test("what a file for docker --env-file leaves around a value is no part of it", () => {
  const values = {
    BLINDRELAY_HOST: "127.0.0.1",
    BLINDRELAY_PORT: "8081",
    BLINDRELAY_STORE: "postgres://ada@db/relay",
    BLINDRELAY_LOG_LEVEL: "warn",
    BLINDRELAY_PUBLIC_URL: "https://relay.example",
    BLINDRELAY_CORS_ORIGIN: "https://app.example,https://b.example",
    BLINDRELAY_DATA: "/var/lib/relay",
  };
  const plain = configWith(values);
  const around = (change: (value: string) => string) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));
  expect(configWith(around((value) => `${value}\r`))).toEqual(plain);
  expect(configWith(around((value) => `"${value}"`))).toEqual(plain);
  expect(configWith(around((value) => ` '${value}'\r\n`))).toEqual(plain);
});

test("an empty --data, as of a variable of a script that is not set, is refused and writes nothing", () => {
  const folder = folderOf();
  for (const command of ["init --username ada --password-stdin", "user list", "check", "start"]) {
    const ended = spawnSync(process.execPath, [RELAY, ...command.split(" "), "--data", ""], {
      cwd: folder,
      input: "a long password",
      encoding: "utf8",
      env: { PATH: process.env.PATH ?? "", HOME: folder },
    });
    expect([command, ended.status]).toEqual([command, 2]);
    expect(ended.stderr).toMatch(/--data/);
  }
  expect(readdirSync(folder)).toEqual([]);
});

test("init with empty variables writes nothing into the current folder", () => {
  const folder = folderOf();
  const ended = spawnSync(
    process.execPath,
    [RELAY, "init", "--username", "ada", "--password-stdin", "--no-totp"],
    {
      cwd: folder,
      input: "a long password",
      encoding: "utf8",
      env: {
        PATH: process.env.PATH ?? "",
        HOME: join(folder, "home"),
        BLINDRELAY_DATA: "",
        BLINDRELAY_MASTER_KEY: "",
        BLINDRELAY_STORE: "",
      },
    },
  );
  expect([ended.status, ended.stderr]).toEqual([0, expect.any(String)]);
  expect([existsSync(join(folder, "store")), existsSync(join(folder, "key"))]).toEqual([
    false,
    false,
  ]);
  expect(existsSync(join(folder, "home/.local/state/blindrelay/relay/key/master.key"))).toBe(true);
});
