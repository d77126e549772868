/**
 * The whole path of an update: signed and published by the command, offered by a real relay,
 * downloaded and verified by an agent, and confirmed only after the new version has booted.
 */
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import {
  type BootConfirmed,
  checkRelease,
  downloadRelease,
  folderStorage,
  makeStateFolder,
  ReleaseError,
  type ReleaseSource,
  type RunningAgent,
  startAgent,
  type Update,
} from "@blindrelay/agent-sdk/node";
import { makeToken } from "@blindrelay/protocol";
import type { AgentCreated, CheckAnswer, Release } from "@blindrelay/protocol/schema/rest";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { House, PASSWORD } from "../cli/processes.ts";

const house = new House();
const AGENT_TOKEN = makeToken("e2e", randomBytes(32));
const IMAGE = randomBytes(700_001);
let publicKey: string;
let keyFile: string;
/** Of somebody else. */
let secondKey: string;
let secondFile: string;
let account: string;
let relayToken: string;

const publishArgs = (channel: string, version: string, ...more: string[]) => [
  ...["release", "publish", house.path("image"), "--runtime", "node", "--channel", channel],
  ...["--firmware-version", version, "--key", keyFile, "--json", ...more],
];

/** Every test has its own channel. */
const publish = async (channel: string, version: string, ...more: string[]): Promise<Release> => {
  const args = publishArgs(channel, version, ...more);
  const { code, stdout, stderr } = await house.cli(args);
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
};

const list = async (): Promise<Release[]> =>
  JSON.parse((await house.cli(["release", "list", "--json"])).stdout).items;

const start = (version: string): Promise<RunningAgent> =>
  startAgent({
    url: house.url,
    agentId: "pump-7",
    relayToken,
    agentToken: AGENT_TOKEN,
    stateDir: house.path("state"),
    firmwareVersion: version,
    program: () => undefined,
    log: () => undefined,
  });

const source = (more: Partial<ReleaseSource> = {}): ReleaseSource => ({
  url: house.url,
  token: relayToken,
  runtime: "node",
  channel: "life",
  version: "1.0.0",
  publicKeys: [publicKey],
  ...more,
});

beforeAll(async () => {
  keyFile = house.path("release.pem");
  const key = await house.cli(["release", "keygen", keyFile, "--json"]);
  publicKey = JSON.parse(key.stdout).public_key;
  expect(statSync(keyFile).mode & 0o777).toBe(0o600);
  secondFile = house.path("second.pem");
  const second = await house.cli(["release", "keygen", secondFile, "--json"]);
  secondKey = JSON.parse(second.stdout).public_key;
  await house.open({ releaseKeys: [publicKey, secondKey] });
  const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
  expect((await house.cli(login, {}, `${PASSWORD}\n`)).code).toBe(0);
  account = JSON.parse(readFileSync(house.path("config/default.json"), "utf8")).account_token;
  const made = await fetch(`${house.url}/api/v1/agents`, {
    method: "POST",
    headers: { authorization: `Bearer ${account}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "Pump", agent_id: "pump-7" }),
  });
  relayToken = ((await made.json()) as AgentCreated).api_token;
  writeFileSync(house.path("image"), IMAGE);
});
afterAll(() => house.close());

it("is published, offered, fetched, booted, and only then confirmed", async () => {
  const before = await start("1.0.0");
  const firstBoot = new Promise<BootConfirmed>((resolve) => before.onBootConfirmed(resolve));
  expect(await firstBoot).toEqual({ version: "1.0.0", previous: null, fellBack: false });
  const pinned = { channel: "life", publicKeys: [publicKey] };
  expect(await before.checkRelease(pinned)).toBeNull();

  const release = await publish("life", "1.1.0", "--notes", "Closes the valve.");
  expect(release).toMatchObject({ status: "published", size: IMAGE.length, runtime: "node" });
  const update = (await before.checkRelease(pinned)) as Update;
  expect(update).toMatchObject({ version: "1.1.0", notes: "Closes the valve." });
  await downloadRelease(update, house.path("new-image"));
  expect(readFileSync(house.path("new-image")).equals(IMAGE)).toBe(true);
  const counts = async () => (await list()).find(({ id }) => id === release.id)?.rollout;
  expect(await counts()).toMatchObject({ offered: 1, confirmed: 0 });
  await before.stop();

  const after = await start("1.1.0");
  const nextBoot = new Promise<BootConfirmed>((resolve) => after.onBootConfirmed(resolve));
  expect(await nextBoot).toEqual({ version: "1.1.0", previous: "1.0.0", fellBack: false });
  expect(await after.checkRelease(pinned)).toBeNull();
  await after.stop();
  // The relay writes what it received within a second.
  await expect.poll(counts).toMatchObject({ offered: 1, confirmed: 1 });

  const again = await start("1.1.0");
  await again.online();
  let heard = 0;
  again.onBootConfirmed(() => {
    heard += 1;
  });
  expect(heard).toBe(0);
  await again.stop();
});

it("is verified by the command without a connection", async () => {
  const release = await publish("verify", "1.1.0");
  const saved = house.write("release.json", JSON.stringify(release));
  const verify = (file: string, key: string) =>
    house.cli(["release", "verify", file, "--release", saved, "--public-key", key]);
  expect(await verify(house.path("image"), publicKey)).toMatchObject({ code: 0, stdout: "ok\n" });
  expect((await verify(house.path("image"), keyFile)).code).toBe(0);
  const other = house.path("other.pem");
  await house.cli(["release", "keygen", other]);
  expect((await verify(house.path("image"), other)).code).toBe(1);
  expect((await verify(house.write("short", "x"), publicKey)).code).toBe(1);
  expect((await house.cli(["release", "keygen", other])).code).toBe(2); // never over an old one
});

it("is checked for by the command, paused, resumed and yanked", async () => {
  const release = await publish("rollout", "1.1.0");
  const check = ["release", "check", "--channel", "rollout", "--firmware-version", "1.0.0"];
  expect((await house.cli(check)).stdout).toBe("1.1.0\n");
  const mine = source({ channel: "rollout" });
  const set = async (...flags: string[]) => {
    const { code, stdout } = await house.cli(["release", "set", release.id, "--json", ...flags]);
    expect(code).toBe(0);
    return JSON.parse(stdout) as Release;
  };
  expect((await set("--pause")).rollout.paused).toBe(true);
  expect(await checkRelease(mine)).toBeNull();
  expect((await set("--resume", "--percent", "100")).rollout.paused).toBe(false);
  expect((await checkRelease(mine))?.version).toBe("1.1.0");
  expect((await set("--yank")).status).toBe("yanked");
  expect((await house.cli(check)).stdout).toBe("nothing newer\n");
});

describe("with a threshold", () => {
  const CHANNEL = "several";
  const names = ["--runtime", "node", "--channel", CHANNEL, "--firmware-version", "1.1.0"];
  const signs = (list: number, end: string, file = house.path("image")) =>
    house.cli([
      ...["release", "sign", file, ...names, "--key", secondFile, "--json"],
      ...["--list", String(list), "--not-after", end],
    ]);
  const device = (more: Partial<ReleaseSource> = {}) => ({
    ...source({ channel: CHANNEL, publicKeys: [publicKey, secondKey], threshold: 2 }),
    ...{ storage: folderStorage(house.path("lists")), ...more },
  });
  const told = (more: Partial<ReleaseSource> = {}): Promise<unknown> =>
    checkRelease(device(more)).then(
      (update) => update?.version,
      (error: unknown) => (error instanceof ReleaseError ? error.problem : error),
    );
  const verified = async (release: object, ...more: string[]) => {
    const saved = house.write("several.json", JSON.stringify(release));
    const keys = [publicKey, secondKey].flatMap((key) => ["--public-key", key]);
    const words = ["release", "verify", house.path("image"), "--release", saved, ...keys, ...more];
    const { code, stderr } = await house.cli(words);
    return `${code} ${stderr}`;
  };

  it("is published by one person, signed by a second one, and trusted only then", async () => {
    makeStateFolder(house.path("lists"));
    const end = ["--list", "7", "--not-after", "2099-01-01"];
    const release = await publish(CHANNEL, "1.1.0", ...end);
    expect(release).toMatchObject({ list: 7, signatures: [{ key_id: release.key_id }] });
    expect(await told()).toBe("untrusted");
    expect(await told({ threshold: 1 })).toBe("1.1.0");
    expect(await verified(release, "--threshold", "2")).toMatch(/^1 .*1 of these keys/);

    const other = house.write("other-image", "another program");
    const refused = await signs(7, "2099-01-01", other);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/other bytes/)]);
    const signed = JSON.parse((await signs(7, "2099-01-01")).stdout) as Release;
    expect(signed).toMatchObject({ status: "published", not_after: 4_070_908_800 });
    expect(signed.signatures).toHaveLength(2);
    expect(await told()).toBe("1.1.0");
    expect(await verified(signed, "--threshold", "2")).toBe("0 ");
    // Devices from before, which know the first text alone.
    expect(await told({ threshold: undefined, publicKeys: [publicKey] })).toBe("1.1.0");
    const { stdout } = await house.cli(["release", "list", "--channel", CHANNEL]);
    expect(stdout).toContain("2 keys, list 7, until 2099-01-01T00:00:00Z");
  });

  it("is signed anew for a later list, before which nothing is trusted then", async () => {
    const both = ["--key", keyFile, "--list", "9", "--not-after", "30d"];
    const words = ["release", "sign", house.path("image"), ...names, "--key", secondFile, ...both];
    const before = (await checkOffer()) as object;
    const { code, stdout } = await house.cli(words);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/2 keys, list 9, until/)]);
    expect(await told()).toBe("1.1.0");
    const end = Math.floor(Date.now() / 1000) + 31 * 86_400;
    expect(await told({ now: () => end })).toBe("expired");
    expect(await told({ now: () => null })).toBe("1.1.0");

    const relay = createServer((_request, response) => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ latest: before }));
    });
    await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(relay.address() as AddressInfo).port}`;
    expect(await told({ url })).toBe("superseded");
    expect(await told({ url, storage: folderStorage(house.path("state")) })).toBe("1.1.0");
    relay.close();
    expect(
      await verified({ ...before, channel: CHANNEL, not_after: 1 }, "--threshold", "1"),
    ).toMatch(/^1 .*0 of these keys/);
  });

  const checkOffer = async () => {
    const path = `/api/v1/releases/check?channel=${CHANNEL}&version=1.0.0`;
    const headers = { authorization: `Bearer ${account}` };
    const answer = await fetch(`${house.url}${path}`, { headers });
    return ((await answer.json()) as CheckAnswer).latest;
  };

  it("takes a list and an end together, and an end that is to come", async () => {
    const misuse = [
      ["--list", "7"],
      ["--not-after", "90d"],
      ["--key", secondFile],
      ["--list", "7", "--not-after", "2020-01-01"],
      ["--list", "7", "--not-after", "soon"],
    ];
    for (const words of misuse) {
      expect((await house.cli(publishArgs("misuse", "1.0.0", ...words))).code, `${words}`).toBe(2);
    }
    const absent = ["--firmware-version", "9.9.9", "--list", "1", "--not-after", "1d"];
    const words = ["release", "sign", house.path("image"), ...names, "--key", keyFile, ...absent];
    expect((await house.cli(words)).code).toBe(5);
  });
});

it("is completed after an interrupted publication", async () => {
  await publish("half", "1.2.0", "--draft");
  expect((await publish("half", "1.2.0")).status).toBe("published");
  expect((await house.cli(publishArgs("half", "1.2.0"))).code).toBe(5);
});

it("leaves no draft if publication fails half way", async () => {
  const other = house.path("other.pem");
  await house.cli(["release", "keygen", other]);
  const words = publishArgs("refused", "1.0.0").map((word) => (word === keyFile ? other : word));
  const { code, stderr } = await house.cli(words);
  expect([code, stderr]).toEqual([5, expect.stringContaining("No release key of this relay")]);
  expect((await list()).filter(({ channel }) => channel === "refused")).toEqual([]);
  const typo = await house.cli([...publishArgs("refused", "1.0.0"), "--runtime", "nod"]);
  expect([typo.code, typo.stderr]).toEqual([2, expect.stringMatching(/espruino, moddable, node/)]);
});

describe("a relay that lies", () => {
  let liar: Server;
  let url: string;
  let truth: NonNullable<CheckAnswer["latest"]>;
  let lie: object;
  let said: object = {};
  /** What the artifact's address sends, by how often it was requested. */
  let serve: (asked: number, from: number) => { bytes: Buffer; breakOff?: boolean };
  let asked: number;

  beforeAll(async () => {
    await publish("lies", "1.2.0");
    const path = "/api/v1/releases/check?channel=lies&version=1.0.0";
    const headers = { authorization: `Bearer ${account}` };
    const answer = await fetch(`${house.url}${path}`, { headers });
    truth = ((await answer.json()) as CheckAnswer).latest as typeof truth;
    liar = createServer((request, response) => {
      if (request.url?.startsWith("/api/")) {
        response.setHeader("content-type", "application/json");
        const latest = { ...truth, url: `${url}/artifact`, ...lie };
        response.end(JSON.stringify({ ...said, latest }));
        return;
      }
      const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
      const { bytes, breakOff } = serve(asked, from);
      asked += 1;
      response.writeHead(from === 0 ? 200 : 206, {
        "content-length": String(bytes.length + (breakOff === true ? 1000 : 0)),
      });
      response.write(bytes, () => {
        if (breakOff === true) response.destroy();
        else response.end();
      });
    });
    await new Promise<void>((resolve) => liar.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(liar.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    liar.close();
    liar.closeAllConnections();
  });

  const told = async (what: object, more: Partial<ReleaseSource> = {}): Promise<unknown> => {
    lie = what;
    return checkRelease(source({ url, channel: "lies", ...more })).then(
      () => "taken",
      (error: unknown) => (error instanceof ReleaseError ? error.problem : error),
    );
  };

  it("is trusted only if it is correct", async () => {
    expect(await told({})).toBe("taken");
    expect(await told({ version: "9.9.9" })).toBe("untrusted");
    expect(await told({ size: truth.size + 1 })).toBe("untrusted");
    expect(await told({ sha256: createHash("sha256").update("x").digest("hex") })).toBe(
      "untrusted",
    );
    expect(await told({ signature: "A".repeat(86) })).toBe("untrusted");
    expect(await told({ runtime: "espruino" }, { runtime: "espruino" })).toBe("untrusted");
    expect(await told({}, { channel: "beta" })).toBe("untrusted");
    expect(await told({ size: "9" })).toBe("refused");
  });

  it("cannot bring an old release back, even correctly signed", async () => {
    expect(await told({}, { version: truth.version })).toBe("downgrade");
    expect(await told({}, { version: "2.0.0" })).toBe("downgrade");
    expect(await told({}, { version: `${truth.version}+local` })).toBe("downgrade");
  });

  it("may name the latest release where it has no update, and no runtime", async () => {
    said = { update_available: false, channel: "lies", current: truth.version };
    lie = {};
    const checked = checkRelease(source({ url, channel: "lies", version: truth.version }));
    expect(await checked).toBeNull();
    const args = ["release", "check", "--channel", "lies", "--firmware-version", truth.version];
    const env = { BLINDRELAY_URL: url, BLINDRELAY_ACCOUNT_TOKEN: account };
    expect(await house.cli(args, env)).toMatchObject({ code: 0, stdout: "nothing newer\n" });
    said = { ...said, update_available: true };
    lie = { runtime: undefined }; // which is more than a relay has to say
    expect(await house.cli(args, env)).toMatchObject({ code: 0, stdout: `${truth.version}\n` });
    said = {};
  });

  const fetched = async (): Promise<unknown> => {
    asked = 0;
    const update = { ...truth, url: `${url}/artifact` };
    const target = house.path("fetched");
    return downloadRelease(update, target).then(
      () => readFileSync(target).equals(IMAGE),
      (error: unknown) => (error instanceof ReleaseError ? error.problem : error),
    );
  };

  it("cannot deliver different, more or fewer bytes, and leaves only what the next call goes on with", async () => {
    const other = Buffer.from(IMAGE);
    other[5] = (other[5] as number) ^ 1;
    serve = () => ({ bytes: other });
    expect(await fetched()).toBe("corrupt");
    serve = () => ({ bytes: Buffer.concat([IMAGE, Buffer.from([0])]) });
    expect(await fetched()).toBe("corrupt");
    expect(existsSync(house.path("fetched.part"))).toBe(false);
    serve = (_asked, from) => ({ bytes: IMAGE.subarray(from, IMAGE.length - 1) });
    expect(await fetched()).toBe("unreachable");
    expect(existsSync(house.path("fetched"))).toBe(false);
    expect(statSync(house.path("fetched.part")).size).toBe(IMAGE.length - 1);
    rmSync(house.path("fetched.part"));
  });

  it("may lose the connection, and the download resumes", async () => {
    serve = (count, from) => ({
      bytes: IMAGE.subarray(from, count < 2 ? from + 100_000 : undefined),
      breakOff: count < 2,
    });
    expect(await fetched()).toBe(true);
    expect(asked).toBe(3);
  });

  it("gets no token from a download, and cannot redirect the device to another address", async () => {
    const asks: string[] = [];
    const inside = createServer((request, response) => {
      asks.push(`${request.url?.split("?")[0]} ${request.headers.authorization?.split(" ")[0]}`);
      response.writeHead(302, { location: "/inside" }).end();
    });
    await new Promise<void>((resolve) => inside.listen(0, "127.0.0.1", resolve));
    const base = `http://127.0.0.1:${(inside.address() as AddressInfo).port}`;
    const failed = expect.any(ReleaseError);
    await expect(checkRelease(source({ url: base }))).rejects.toEqual(failed);
    const update = { ...truth, url: `${base}/artifact` };
    await expect(downloadRelease(update, house.path("redirected"))).rejects.toEqual(failed);
    inside.close();
    expect(new Set(asks)).toEqual(
      new Set(["/api/v1/releases/check Bearer", "/artifact undefined"]),
    );
  });
});
