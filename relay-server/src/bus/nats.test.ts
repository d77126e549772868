/** The transport over NATS, tested with a real server. */
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nkeys } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { makeCertificates, noOpenssl } from "../testing/certificates.ts";
import { type NatsSettings, openNats } from "./nats.ts";
import { noNatsServer, ownNatsServer } from "./testing/nats-server.ts";
import type { Transport } from "./transport.ts";

const silent = { info: () => {}, warn: () => {}, error: () => {} };
const open = (settings: Partial<NatsSettings> & { url: string }) =>
  openNats({ name: "node", minBytes: 1000, ...settings }, silent);

/** Whether published messages are delivered, once it is up. */
const carries = async (transport: Transport): Promise<boolean> => {
  await expect.poll(() => transport.isUp).toBe(true);
  const heard: string[] = [];
  const unsubscribe = transport.subscribe("a.b", ({ payload }) =>
    heard.push(Buffer.from(payload).toString()),
  );
  transport.publish("a.b", Buffer.from("hello"));
  await expect.poll(() => heard).toEqual(["hello"]);
  unsubscribe();
  return transport.isUp;
};

test.skipIf(noNatsServer)("logins that are refused for a while do not end the bus", async () => {
  const login = (pass: string) => ["--user", "relay", "--pass", pass];
  const nats = await ownNatsServer(login("one"));
  const url = nats.url.replace("//", "//relay:one@");
  let refused = 0;
  const log = { ...silent, error: () => (refused += 1) };
  const transport = await openNats(
    { url, name: "node", minBytes: 1000 },
    log as unknown as typeof silent,
  );
  try {
    await nats.stop();
    await nats.start(login("two"));
    await expect.poll(() => refused).toBeGreaterThan(2);
    await nats.stop();
    await nats.start();
    expect(await carries(transport)).toBe(true);
  } finally {
    await transport.close();
    await nats.stop();
  }
});

test.skipIf(noNatsServer).each([
  ["100%", "100%"],
  ["100%", "100%25"],
  ["a%zz", "a%zz"],
  ["100%;ä", "100%;ä"],
])("the password %j is taken as it is from an address with %j", async (password, written) => {
  const nats = await ownNatsServer(["--user", "relay", "--pass", password]);
  const url = nats.url.replace("//", `//relay:${written}@`);
  const transport = await open({ url });
  try {
    expect(await carries(transport)).toBe(true);
  } finally {
    await transport.close();
    await nats.stop();
  }
});

// nats-io/nats.rs#801, nats-io/nats.java#209
test.skipIf(noNatsServer)("of several servers one that is there is found", async () => {
  const nats = await ownNatsServer(["--user", "relay", "--pass", "a,b"]);
  const { host } = new URL(nats.url);
  try {
    for (const url of [
      `nats://relay:a,b@127.0.0.1:1,${host}`,
      `nats://relay:a,b@127.0.0.1:1, nats://relay:a,b@${host}`,
      `nats://relay:a,b@${host},127.0.0.1:1`,
    ]) {
      const transport = await open({ url });
      expect(await carries(transport)).toBe(true);
      await transport.close();
    }
    await expect(open({ url: "nats://a:4222,b:x" })).rejects.toThrow("several with commas");
    await expect(open({ url: "nats://a,tls://b" })).rejects.toThrow("write it at all");
    for (const url of [
      "nats://a,nats://x:y@b",
      "nats://x:y@a,nats://x:z@b",
      "nats://x@a,nats://z@b",
    ]) {
      await expect(open({ url })).rejects.toThrow("all servers need one login");
    }
  } finally {
    await nats.stop();
  }
});

test.skipIf(noNatsServer)(
  "a server that starts later is found, with all subscriptions",
  async () => {
    const nats = await ownNatsServer();
    await nats.stop();
    const transport = await open({ url: nats.url });
    try {
      expect(transport.isUp).toBe(false);
      const heard: string[] = [];
      let ups = 0;
      transport.onUp(() => {
        ups += 1;
      });
      transport.subscribe("early", ({ payload }) => heard.push(Buffer.from(payload).toString()));
      transport.publish("early", Buffer.from("lost: nothing is queued"));
      await nats.start();
      await expect.poll(() => ups).toBe(1);
      transport.publish("early", Buffer.from("there"));
      await expect.poll(() => heard).toEqual(["there"]);
      await nats.stop();
      await expect.poll(() => transport.isUp).toBe(false);
      await nats.start();
      await expect.poll(() => ups).toBe(2);
      expect(await carries(transport)).toBe(true);
    } finally {
      await transport.close();
      await nats.stop();
    }
  },
);

test.skipIf(noNatsServer)("a server that accepts only short messages is refused", async () => {
  const nats = await ownNatsServer();
  try {
    await expect(open({ url: nats.url, minBytes: 2 ** 21 })).rejects.toThrow(/max_payload/);
  } finally {
    await nats.stop();
  }
});

test.skipIf(noNatsServer || noOpenssl)(
  "TLS: the server and the relay each verify the other",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "blindrelay-tls-"));
    const { ca, cert, key, clientCert, clientKey } = makeCertificates(folder, "relay");
    const nats = await ownNatsServer([
      ...["--tls", "--tlscert", cert, "--tlskey", key, "--tlscacert", ca, "--tlsverify"],
      ...["--user", "relay", "--pass", "one"],
    ]);
    const url = nats.url.replace("nats://", "tls://relay:one@");
    const isUp = async (settings: Partial<NatsSettings> & { url: string }) => {
      const transport = await open(settings);
      const { isUp: wasUp } = transport;
      await transport.close();
      return wasUp;
    };
    try {
      const transport = await open({ url, ca, cert: clientCert, key: clientKey });
      expect(await carries(transport)).toBe(true);
      await transport.close();
      expect(await isUp({ url, cert: clientCert, key: clientKey }), "unknown authority").toBe(
        false,
      );
      expect(await isUp({ url, ca }), "no certificate of its own").toBe(false);
      const wrong = url.replace("relay:one", "relay:two");
      expect(await isUp({ url: wrong, ca, cert: clientCert, key: clientKey })).toBe(false);
      await expect(open({ url, ca: join(folder, "none") })).rejects.toThrow(/--bus-ca/);
    } finally {
      await nats.stop();
      rmSync(folder, { recursive: true });
    }
  },
);

test.skipIf(noNatsServer)("a credentials file authenticates the relay with a key", async () => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-creds-"));
  const user = nkeys.createUser();
  const config = join(folder, "nats.conf");
  const users = (nkey: string) => `authorization: { users: [ { nkey: ${nkey} } ] }`;
  writeFileSync(config, users(user.getPublicKey()));
  let refused = 0;
  const log = { ...silent, error: () => (refused += 1) } as unknown as typeof silent;
  const credsOf = (seed: Uint8Array) => {
    const path = join(folder, "relay.creds");
    const part = (name: string, text: string) =>
      `-----BEGIN ${name}-----\n${text}\n------END ${name}------\n\n`;
    const nkey = part("USER NKEY SEED", Buffer.from(seed).toString());
    writeFileSync(path, part("NATS USER JWT", "e30.e30.e30") + nkey);
    return path;
  };
  const nats = await ownNatsServer(["-c", config]);
  try {
    const creds = credsOf(user.getSeed());
    const transport = await openNats({ url: nats.url, name: "node", minBytes: 1000, creds }, log);
    expect(await carries(transport)).toBe(true);
    const renewed = nkeys.createUser();
    await nats.stop();
    writeFileSync(config, users(renewed.getPublicKey()));
    await nats.start();
    await expect.poll(() => transport.isUp).toBe(false);
    rmSync(join(folder, "relay.creds"));
    await expect.poll(() => refused).toBeGreaterThan(1);
    writeFileSync(creds, "-----BEGIN NATS USER JWT-----\n");
    const before = refused;
    await expect.poll(() => refused).toBeGreaterThan(before + 1);
    credsOf(renewed.getSeed());
    expect(await carries(transport), "with the file as it is now").toBe(true);
    await transport.close();
    const other = await open({ url: nats.url, creds: credsOf(nkeys.createUser().getSeed()) });
    expect(other.isUp).toBe(false);
    await other.close();
  } finally {
    await nats.stop();
    rmSync(folder, { recursive: true });
  }
});

// nats-io/nats.rs#1471, nats-io/nats.go#1363
test.skipIf(noNatsServer || noOpenssl)(
  "a certificate that is renewed while the relay runs is used for the next connection",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "blindrelay-renewed-"));
    const { ca, cert, key, clientCert, clientKey } = makeCertificates(folder, "relay");
    const other = makeCertificates(mkdtempSync(join(folder, "other-")), "relay");
    const flags = (of: { ca: string; cert: string; key: string }) => [
      ...["--tls", "--tlscert", of.cert, "--tlskey", of.key, "--tlscacert", of.ca, "--tlsverify"],
    ];
    const nats = await ownNatsServer(flags({ ca, cert, key }));
    const url = nats.url.replace("nats:", "tls:");
    const transport = await open({ url, ca, cert: clientCert, key: clientKey });
    try {
      expect(transport.isUp).toBe(true);
      await nats.stop();
      copyFileSync(other.ca, ca);
      copyFileSync(other.clientCert, clientCert);
      copyFileSync(other.clientKey, clientKey);
      await nats.start(flags(other));
      await expect.poll(() => transport.isUp).toBe(false);
      expect(await carries(transport)).toBe(true);
    } finally {
      await transport.close();
      await nats.stop();
      rmSync(folder, { recursive: true });
    }
  },
);
