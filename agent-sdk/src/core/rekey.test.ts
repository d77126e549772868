import { createHash } from "node:crypto";
import { makeToken } from "@blindrelay/protocol";
import {
  deriveSignatureKey,
  extractPrk,
  jsonBytes,
  rekeyProof,
  signPayload,
} from "@blindrelay/protocol/crypto";
import { DEFAULT_AGENT_LIMITS } from "@blindrelay/protocol/session";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { describe, expect, it } from "vitest";
import { CuttableStorage, MEDIA, type Medium, MemoryStorage, PowerCut } from "../memory/index.ts";
import type { StoragePort } from "../ports.ts";
import {
  askRekey,
  later,
  opens,
  type RekeyedDevice,
  startRekeyed,
  storedSecret,
  tenMinutesLater,
} from "../testing/rekeyed-device.ts";
import { AGENT_ID, AGENT_TOKEN, Client } from "../testing/world.ts";
import { provisionBootCount } from "./bootcount.ts";
import { provisionSecrets } from "./rekey.ts";

const suite = nodeSuite();
const tokenOf = (byte: number): string => makeToken("e2e", new Uint8Array(32).fill(byte));
const NEW = tokenOf(7);
const PUSH_KEY = makeToken("push", new Uint8Array(32).fill(9));

const provisioned = (medium: Medium = "truncate"): CuttableStorage => {
  const storage = new CuttableStorage(medium);
  provisionBootCount(storage, suite, AGENT_TOKEN);
  return storage;
};

const begun = (storage: StoragePort, id = "one"): RekeyedDevice => {
  const device = startRekeyed(storage) as RekeyedDevice;
  expect(askRekey(device, { secret: NEW, id }).result).toEqual({ id, expires_in: 600 });
  return device;
};

describe("a new secret over the air", () => {
  it("is confirmed by the first session under it, which ends those of the old one", () => {
    const storage = provisioned();
    const device = startRekeyed(storage) as RekeyedDevice;
    const old = new Client(device.world).open();
    expect(old.call("system.rekey", { secret: NEW, id: "one" }).result).toEqual({
      id: "one",
      expires_in: 600,
    });
    expect(old.call("system.rekey").result).toEqual({ serial: 0, trial: "one" });
    const renewed = new Client(device.world, "bare", NEW).open();
    expect(renewed.call("system.rekey").result).toEqual({ serial: 0, trial: null });
    old.pump();
    expect(old.inbox.at(-1)).toMatchObject({ method: "system.close" });
    expect(device.replaced).toBe(true);
    expect([opens(device, AGENT_TOKEN), opens(device, NEW)]).toEqual([false, true]);
    for (const name of ["secret.0", "secret.1", "boot.0", "boot.1"])
      expect(storage.read(name)).not.toContain(AGENT_TOKEN);
  });

  it("is used after restarts, whichever of the secrets the configuration has", () => {
    const storage = provisioned();
    opens(begun(storage), NEW);
    const again = startRekeyed(storage) as RekeyedDevice;
    expect([again.replaced, opens(again, NEW), opens(again, AGENT_TOKEN)]).toEqual([
      true,
      true,
      false,
    ]);
    expect(startRekeyed(storage, { configured: NEW })?.replaced).toBe(false);
    expect(startRekeyed(storage, { configured: tokenOf(8) })).toBeNull();
    expect(askRekey(again, { secret: AGENT_TOKEN, id: "back" }, NEW).error.message).toContain(
      "had",
    );
  });

  it("outlives one restart as a trial, and not a second one", () => {
    const storage = provisioned();
    begun(storage);
    const second = startRekeyed(storage.copy()) as RekeyedDevice;
    expect([opens(second, AGENT_TOKEN), opens(second, NEW)]).toEqual([true, true]);
    startRekeyed(storage);
    const third = startRekeyed(storage) as RekeyedDevice;
    expect([opens(third, NEW), opens(third, AGENT_TOKEN)]).toEqual([false, true]);
  });

  it("gets no more time from a restart where there is a clock, whichever way that is set", () => {
    for (const [setMs, leftMs] of [
      [0, 600_000],
      [240_000, 360_000],
      [-9_000_000, 600_000],
      [600_000, 0],
      [9_000_000, 0],
    ] as const) {
      const storage = provisioned();
      let clockMs = 1_000_000_000;
      const start = { now: () => clockMs };
      askRekey(startRekeyed(storage, start) as RekeyedDevice, { secret: NEW, id: "one" });
      clockMs += setMs;
      const device = startRekeyed(storage, start) as RekeyedDevice;
      const trialOf = () => askRekey(device, {}).result.trial;
      expect(trialOf()).toBe(leftMs > 0 ? "one" : null);
      if (leftMs === 0) continue;
      later(device, leftMs - 200_000);
      expect(trialOf()).toBe("one");
      later(device, 200_000);
      expect(trialOf()).toBe(null);
    }
  });

  it("is dropped after ten minutes, and can be tried again", () => {
    const storage = provisioned();
    const device = begun(storage);
    tenMinutesLater(device);
    expect(opens(device, NEW)).toBe(false);
    expect(askRekey(device, {}).result).toEqual({ serial: 0, trial: null });
    expect(askRekey(device, { secret: NEW, id: "two" }).result.id).toBe("two");
    expect(opens(device, NEW)).toBe(true);
  });

  it("is answered alike when asked again, and refused beside another or of a wrong kind", () => {
    const device = begun(provisioned());
    expect(askRekey(device, { secret: NEW, id: "one" }).result).toEqual({
      id: "one",
      expires_in: 600,
    });
    const wrong = [
      { secret: tokenOf(8), id: "two" },
      { secret: tokenOf(8), id: "one" },
      { secret: makeToken("agent", new Uint8Array(32)), id: "two" },
      { secret: NEW, id: "" },
      { secret: NEW, id: "x".repeat(65) },
      { secret: 7, id: "two" },
      { id: "two" },
    ];
    for (const params of wrong) expect(askRekey(device, params).error?.code).toBe(-32000);
    expect(opens(device, NEW)).toBe(true);
  });

  it("is refused with the reason where it, or its id, is none", () => {
    const device = startRekeyed(provisioned()) as RekeyedDevice;
    const messageOf = (params: object): string => askRekey(device, params).error?.message;
    for (const id of [undefined, null, 7, "", "x".repeat(65)])
      expect(messageOf({ secret: NEW, id })).toBe("no id");
    for (const secret of [undefined, null, 7])
      expect(messageOf({ secret, id: "x" })).toBe("no secret");
    expect(messageOf({ secret: makeToken("agent", new Uint8Array(32)), id: "x" })).toContain(
      "e2e_",
    );
    expect(messageOf({ secret: "x", id: "x" })).toContain("e2e_");
    expect(askRekey(device, {}).result.trial).toBeNull();
    expect(askRekey(device, { secret: NEW, id: "x" }).result.id).toBe("x");
    for (const other of [{ id: "y" }, { secret: tokenOf(8) }])
      expect(messageOf({ secret: NEW, id: "x", ...other })).toBe("another secret is on trial");
    tenMinutesLater(device);
    const longest = "x".repeat(64);
    expect(askRekey(device, { secret: NEW, id: longest }).result.id).toBe(longest);
  });

  it("leaves nothing of the seed that its trial was made from", () => {
    const storage = new CuttableStorage("truncate");
    provisionBootCount(storage, suite, AGENT_TOKEN, new Uint8Array(32).fill(1));
    const seeds: Uint8Array[] = [];
    const device = startRekeyed(storage, {
      made: ({ seed }) => seeds.push(seed as Uint8Array),
    }) as RekeyedDevice;
    askRekey(device, { secret: NEW, id: "one" });
    expect(seeds[1]).toEqual(new Uint8Array(32));
  });

  it("never brings an epoch back: A, B, and A's packets again in one boot", () => {
    const storage = provisioned();
    const device = startRekeyed(storage) as RekeyedDevice;
    const { timer } = device.world;
    const parts = new Set<string>();
    for (let round = 0; round < 3; round++) {
      askRekey(device, { secret: NEW, id: `round-${round}` });
      const client = new Client(device.world, "bare", NEW);
      const [opening] = client.session.open(timer.now());
      if (opening?.kind !== "send") throw new Error("no opening");
      device.world.say(opening.text);
      parts.add(JSON.parse(device.world.link().texts.at(-1) ?? "{}").sid.split(".")[1]);
      tenMinutesLater(device);
    }
    expect(parts.size).toBe(3);
  });

  it("wants the push key's proof where the device has one", () => {
    const storage = provisioned();
    const device = startRekeyed(storage, { pushKey: PUSH_KEY }) as RekeyedDevice;
    const digest = createHash("sha256").update(NEW).digest("hex");
    const proof = rekeyProof(suite, PUSH_KEY, AGENT_ID, 3, digest);
    const asked = { secret: NEW, id: "one" };
    expect(askRekey(device, asked).error.message).toContain("agent rekey --push-key");
    for (const bad of [
      { proof, serial: 4 },
      { proof: proof.slice(1), serial: 3 },
      { proof: rekeyProof(suite, PUSH_KEY, "other", 3, digest), serial: 3 },
      { proof: rekeyProof(suite, PUSH_KEY, AGENT_ID, 3, digest.replace(/./, "g")), serial: 3 },
      { proof, serial: 0 },
      { proof, serial: "3" },
    ])
      expect(askRekey(device, { ...asked, ...bad }).error.message).toContain("not proven");
    expect(opens(device, NEW)).toBe(false);
    expect(askRekey(device, { ...asked, proof, serial: 3 }).result.id).toBe("one");
    tenMinutesLater(device);
    expect(askRekey(device, { ...asked, proof, serial: 3 }).error.message).toContain("above 3");
  });

  it("leaves the sessions of the one before as they are while it is on trial", () => {
    const { world } = begun(provisioned());
    const part = { methods: [], receive: () => undefined, lost: () => undefined };
    const { heardAt } = world.core.attach(part);
    const client = new Client(world).open();
    const sid = world.core.sessions.held().at(-1) as string;
    expect([heardAt(sid), heardAt("none")]).toEqual([world.timer.now(), null]);
    client.sendJson({ jsonrpc: "2.0", method: "system.close" });
    expect(heardAt(sid)).toBeNull();
  });

  it("answers as little as the one before once the agent has stopped", () => {
    const { world } = begun(provisioned());
    const answers = (): string[] =>
      [AGENT_TOKEN, NEW].map((token) => {
        const [opening] = new Client(world, "bare", token).session.open(0);
        if (opening?.kind !== "send") throw new Error("no opening");
        return world.core.sessions.receive(opening.text, world.timer.now()).kind;
      });
    expect(answers()).toEqual(["answer", "answer"]);
    world.core.stop();
    expect(answers()).toEqual(["refused", "refused"]);
  });

  it("signs envelopes while it is on trial, and alone once it is confirmed", () => {
    const device = begun(provisioned());
    const { world } = device;
    /** By which secrets an envelope of this secret's session may be signed. */
    const signers = (token: string): boolean[] => {
      const client = new Client(world, "envelope", token).open();
      return [AGENT_TOKEN, NEW, tokenOf(8)].map((signer) => {
        const key = deriveSignatureKey(suite, extractPrk(suite, AGENT_ID, signer));
        const ping = { jsonrpc: "2.0", id: 5, method: "system.ping" };
        const packet = client.session.seal(jsonBytes(ping)) as string;
        const before = world.link().texts.length;
        world.say(client.wrap(packet, { signature: signPayload(suite, key, packet) }));
        return world.link().texts.length > before;
      });
    };
    expect(signers(AGENT_TOKEN)).toEqual([true, true, false]);
    tenMinutesLater(device);
    expect(signers(AGENT_TOKEN)).toEqual([true, false, false]);
    askRekey(device, { secret: NEW, id: "two" });
    expect(signers(NEW)).toEqual([false, true, false]);
  });

  it("is nothing that a storage records before it has one", () => {
    const storage = provisioned();
    startRekeyed(storage);
    expect(provisionSecrets(storage, suite, NEW)).toBe(true);
    expect([storage.read("secret.0"), storage.read("secret.1")]).toEqual([null, null]);
  });

  it("stays on trial when the storage is provisioned for the secret that it has", () => {
    const storage = provisioned();
    begun(storage);
    expect(provisionSecrets(storage, suite, AGENT_TOKEN)).toBe(true);
    expect(opens(startRekeyed(storage) as RekeyedDevice, NEW)).toBe(true);
  });

  it("keeps the hashes of those before it when the storage is provisioned", () => {
    const storage = provisioned();
    opens(begun(storage), NEW);
    const other = tokenOf(8);
    expect(provisionSecrets(storage, suite, AGENT_TOKEN)).toBe(false);
    expect(provisionSecrets(storage, suite, other)).toBe(true);
    provisionBootCount(storage, suite, other);
    expect(startRekeyed(storage, { configured: other })?.replaced).toBe(false);
    expect(startRekeyed(storage)?.replaced).toBe(true);
    expect(startRekeyed(storage, { configured: tokenOf(9) })).toBeNull();
  });
});

describe.each(MEDIA)("power cuts while rekeying, on a medium that does %s", (medium) => {
  /** With power until a step; what the device does afterwards finds no storage. */
  const cutAt = (storage: CuttableStorage, step: number, secretToTry: string): void => {
    storage.cutAfter(step);
    try {
      const device = startRekeyed(storage);
      if (device === null) return;
      askRekey(device, { secret: NEW, id: "one" });
      opens(device, secretToTry);
    } catch (error) {
      if (!(error instanceof PowerCut)) throw error;
    }
  };

  it("leave one secret that opens, whenever the first and the second occur", () => {
    const origin = provisioned(medium);
    const whole = origin.copy();
    const before = whole.steps;
    opens(begun(whole), NEW);
    const most = whole.steps - before;
    for (let step = 1; step <= most; step += 23) {
      const once = origin.copy();
      cutAt(once, step, NEW);
      const twice = once.copy();
      cutAt(twice, 1 + ((step * 7) % 900), NEW);
      const end = twice.copy();
      const device = startRekeyed(end) as RekeyedDevice;
      expect(device).not.toBeNull();
      // The client tries the new one first, then the old one.
      const isNew = opens(device, NEW);
      expect(isNew || opens(device, AGENT_TOKEN)).toBe(true);
      if (isNew) expect(opens(device, AGENT_TOKEN)).toBe(false);
      expect(opens(device, tokenOf(8))).toBe(false);
    }
  });
});

/** One write fails, before or after it took place. */
class FailingStorage extends MemoryStorage {
  private left: number;
  private readonly isWritten: boolean;

  constructor(from: StoragePort & { names(): string[] }, left: number, isWritten: boolean) {
    super();
    for (const name of from.names()) super.write(name, from.read(name) ?? "");
    this.left = left;
    this.isWritten = isWritten;
  }

  get hasFailed(): boolean {
    return this.left <= 0;
  }

  override write(name: string, text: string): void {
    this.left--;
    if (this.left !== 0 || this.isWritten) super.write(name, text);
    if (this.left === 0) throw new Error("the medium failed");
  }
}

describe("a storage that fails", () => {
  const origin = new MemoryStorage();
  provisionBootCount(origin, suite, AGENT_TOKEN);

  it.each([false, true])("takes no other secret until the next start (written: %s)", (written) => {
    let refused = 0;
    for (let write = 1; ; write++) {
      // The start itself has written the count.
      const storage = new FailingStorage(origin, write + 2, written);
      const device = startRekeyed(storage) as RekeyedDevice;
      const old = new Client(device.world).open();
      const first = old.call("system.rekey", { secret: NEW, id: "one" });
      const isNew = opens(device, NEW);
      if (!storage.hasFailed) break;
      expect(isNew).toBe(false);
      const again = new Client(device.world).open();
      const said = again.call("system.rekey", {});
      const other = again.call("system.rekey", { secret: tokenOf(8), id: "two" });
      if (said.error?.message.includes("restart the device")) refused++;
      // Nothing was begun: a count that failed leaves everything as it was.
      else
        expect([first.result, said.result.trial, other.error]).toEqual([
          undefined,
          null,
          undefined,
        ]);
      const next = startRekeyed(storage) as RekeyedDevice;
      const held = said.error === undefined ? [tokenOf(8), AGENT_TOKEN] : [NEW, AGENT_TOKEN];
      expect(held.map((token) => opens(next, token))).toContain(true);
    }
    expect(refused).toBe(3);
  });
});

it("leaves no older secret on the medium after the start that follows a cut", () => {
  // A file keeps its old text until the last step, so that most cuts come between the two writes.
  const origin = provisioned("rename");
  opens(begun(origin), NEW);
  const third = tokenOf(8);
  let left = 0;
  /** The power goes in a step of the confirmation; whether it did. */
  const cutAt = (step: number): boolean => {
    const storage = origin.copy();
    const device = startRekeyed(storage) as RekeyedDevice;
    askRekey(device, { secret: third, id: "two" }, NEW);
    const before = storage.steps;
    storage.cutAfter(step);
    opens(device, third);
    const after = storage.copy();
    const holds = (token: string): boolean =>
      ["secret.0", "secret.1"].some((name) => after.read(name)?.includes(token));
    const isReplaced = storedSecret(after.copy()) === third;
    if (isReplaced && holds(NEW)) left++;
    startRekeyed(after);
    if (isReplaced) expect(holds(NEW)).toBe(false);
    return storage.steps - before >= step;
  };
  for (let step = 1; cutAt(step); step += 7);
  expect(left).toBeGreaterThan(0);
});

it.each([
  { maxFrom: undefined, size: 4500 },
  { maxFrom: 8, size: 700 },
])(
  "knows the secret of the configuration after any number of others ($size bytes)",
  ({ maxFrom, size }) => {
    const storage = provisioned();
    let device = startRekeyed(storage, { maxFrom }) as RekeyedDevice;
    let token = AGENT_TOKEN;
    for (let n = 20; n < 90; n++) {
      const next = tokenOf(n);
      expect(askRekey(device, { secret: next, id: `${n}` }, token).result.id).toBe(`${n}`);
      expect(opens(device, next)).toBe(true);
      token = next;
      if (n === 40) device = startRekeyed(storage, { maxFrom }) as RekeyedDevice;
    }
    expect(storage.read("secret.0")?.length).toBeLessThan(size);
    const again = startRekeyed(storage) as RekeyedDevice;
    expect([again.replaced, opens(again, token)]).toEqual([true, true]);
    expect(startRekeyed(storage, { configured: tokenOf(20) })).toBeNull();
  },
);

it("lets a client of the old secret in while strangers use up the openings", () => {
  const device = begun(provisioned());
  const { world } = device;
  const client = new Client(world);
  const [opening] = client.session.open(world.timer.now());
  if (opening?.kind !== "send") throw new Error("no opening");
  world.say(opening.text);
  const flood = (): void => {
    for (let n = 0; n <= DEFAULT_AGENT_LIMITS.unheldBurst; n++) {
      const stranger = new Client(world, "bare", tokenOf(9));
      const [forged] = stranger.session.open(world.timer.now());
      if (forged?.kind === "send") world.link().end.send(forged.text);
    }
    world.settle();
  };
  flood();
  expect(opens(device, AGENT_TOKEN)).toBe(false);
  client.pump();
  expect(client.session.state).toBe("open");
  expect(client.call("system.rekey").result).toEqual({ serial: 0, trial: "one" });
});
