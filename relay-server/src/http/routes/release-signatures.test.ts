/** The second signed text of releases, by several keys. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import {
  type ListedRelease,
  listedReleaseText,
  type ReleaseSignature,
  releaseText,
} from "@blindrelay/protocol/releases";
import { Release as ReleaseSchema } from "@blindrelay/protocol/schema/rest";
import { Value } from "typebox/value";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Rest, startRest } from "../testing/test-rest.ts";

interface Signer {
  readonly x: string;
  readonly key_id: string;
  readonly key: KeyObject;
}

const makeSigner = (): Signer => {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const x = publicKey.export({ format: "jwk" }).x as string;
  const hash = createHash("sha256").update(Buffer.from(x, "base64url")).digest("hex");
  return { x, key_id: hash.slice(0, 16), key: privateKey };
};

const ANN = makeSigner();
const BEN = makeSigner();
const STRANGER = makeSigner();
const DRAFT = { runtime: "node", channel: "stable", version: "1.4.0" };
const BYTES = Buffer.from("firmware");
const sha256 = createHash("sha256").update(BYTES).digest("hex");
const RELEASE: ListedRelease = {
  ...{ ...DRAFT, size: BYTES.length, sha256 },
  ...{ list: 7, not_after: 1_900_000_000 },
};
const NUMBERS = { list: RELEASE.list, not_after: RELEASE.not_after };

const signed = (text: string, by: Signer): string =>
  sign(null, Buffer.from(text), by.key).toString("base64url");
const signature = (by: Signer, release = RELEASE): ReleaseSignature => ({
  key_id: by.key_id,
  signature: signed(listedReleaseText(release), by),
});

let rest: Rest;
let token: string;
beforeEach(async () => {
  rest = await startRest({ releaseKeys: [ANN.x, BEN.x] });
  token = (await rest.login()).user.api_token;
});
afterEach(() => rest.close());

const upload = (id: string, bytes = BYTES) =>
  rest.app.inject({
    method: "PUT",
    url: `/api/v1/releases/${id}/artifact`,
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/octet-stream",
      "release-signature": signed(
        releaseText({
          ...{ ...DRAFT, size: bytes.length },
          sha256: createHash("sha256").update(bytes).digest("hex"),
        }),
        ANN,
      ),
    },
    payload: bytes,
  });
const create = async (): Promise<string> =>
  (await rest.call("POST", "/releases", { token, body: DRAFT })).json().id;
const patch = (id: string, body: object) => rest.call("PATCH", `/releases/${id}`, { token, body });
const uploaded = async (): Promise<string> => {
  const id = await create();
  expect((await upload(id)).json()).not.toHaveProperty("list");
  return id;
};
const latest = async () =>
  (await rest.call("GET", "/releases/check?channel=stable&version=1.0.0", { token })).json().latest;

test("are stored, answered and offered; a published release can be signed again", async () => {
  const id = await uploaded();
  const signatures = [signature(ANN), signature(BEN)];
  const answer = await patch(id, { ...NUMBERS, signatures, status: "published" });
  expect(answer.statusCode).toBe(200);
  expect(Value.Check(ReleaseSchema, answer.json())).toBe(true);
  expect(answer.json()).toMatchObject({ ...NUMBERS, signatures, key_id: ANN.key_id });
  expect(await latest()).toMatchObject({ ...NUMBERS, signatures, key_id: ANN.key_id });

  const later = { list: 8, not_after: RELEASE.not_after + 1 };
  const again = [signature(BEN, { ...RELEASE, ...later })];
  expect((await patch(id, { ...later, signatures: again })).statusCode).toBe(200);
  expect(await latest()).toMatchObject({ ...later, signatures: again });
  const audit = await rest.call("GET", "/admin/audit?action=release.sign", { token });
  expect(audit.json().items).toHaveLength(2);

  await patch(id, { status: "yanked" });
  expect((await patch(id, { ...later, signatures: again })).statusCode).toBe(409);
});

test.each<[string, ListedRelease, Signer]>([
  ["another version", { ...RELEASE, version: "1.4.1" }, ANN],
  ["another channel", { ...RELEASE, channel: "beta" }, ANN],
  ["another runtime", { ...RELEASE, runtime: "espruino" }, ANN],
  ["another size", { ...RELEASE, size: RELEASE.size + 1 }, ANN],
  ["other bytes", { ...RELEASE, sha256: "ab".repeat(32) }, ANN],
  ["another list", { ...RELEASE, list: 6 }, ANN],
  ["a later end", { ...RELEASE, not_after: RELEASE.not_after + 1 }, ANN],
  ["this, by a stranger", RELEASE, STRANGER],
])("a signature over %s is refused", async (_what, release, by) => {
  const id = await uploaded();
  const signatures = [signature(BEN), signature(by, release)];
  const answer = await patch(id, { ...NUMBERS, signatures });
  expect([answer.statusCode, answer.json().code]).toEqual([422, "UNTRUSTED_SIGNATURE"]);
  expect(answer.json().errors).toMatchObject([{ path: "/signatures", in: "body" }]);
  expect((await rest.call("GET", `/releases/${id}`, { token })).json().signatures).toBeUndefined();
});

test("one key does not count twice, nor under the name of another", async () => {
  const id = await uploaded();
  for (const signatures of [
    [],
    [signature(ANN), signature(ANN)],
    [{ ...signature(ANN), key_id: BEN.key_id }],
    [{ key_id: ANN.key_id, signature: signed(releaseText(RELEASE), ANN) }],
  ]) {
    const answer = await patch(id, { ...NUMBERS, signatures });
    expect([answer.statusCode, answer.json().code]).toEqual([422, "UNTRUSTED_SIGNATURE"]);
  }
  const many = Array.from({ length: 17 }, () => signature(ANN));
  expect((await patch(id, { ...NUMBERS, signatures: many })).json().code).toBe("VALIDATION_FAILED");
});

test("need their numbers, and an artifact, and end with it", async () => {
  const id = await create();
  const signatures = [signature(ANN)];
  expect((await patch(id, { ...NUMBERS, signatures })).statusCode).toBe(409);
  await upload(id);
  for (const body of [{ signatures }, NUMBERS, { list: 7, signatures }, { ...NUMBERS, list: -1 }]) {
    expect((await patch(id, body)).json().code).toBe("VALIDATION_FAILED");
  }
  expect((await patch(id, { ...NUMBERS, signatures })).statusCode).toBe(200);
  const other = await upload(id, Buffer.from("other bytes"));
  expect(other.json()).not.toHaveProperty("list");
});
