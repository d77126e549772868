/** HKDF, HMAC and both AEADs: the RFCs' own cases, transcribed, and more made with node:crypto. */
import { type Bytes, filler, fromHex, sealWith, toHex } from "./reference.ts";

const text = (value: string): string => toHex(Buffer.from(value));

/** Bytes from `from` to `to`, inclusive, as hex. */
const range = (from: number, to: number): string =>
  toHex(Uint8Array.from({ length: to - from + 1 }, (_, i) => from + i));

export const hkdfFile = {
  comment:
    "HKDF-SHA256. prk = Extract(salt, ikm); okm = Expand(prk, info, length). invalid: lengths that are refused",
  source: "https://www.rfc-editor.org/rfc/rfc5869#appendix-A",
  valid: [
    {
      comment: "RFC 5869 A.1",
      ikm: "0b".repeat(22),
      salt: range(0x00, 0x0c),
      info: range(0xf0, 0xf9),
      length: 42,
      prk: "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
      okm: "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
    },
    {
      comment: "RFC 5869 A.2, longer inputs",
      ikm: range(0x00, 0x4f),
      salt: range(0x60, 0xaf),
      info: range(0xb0, 0xff),
      length: 82,
      prk: "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
      okm: "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
    },
    {
      comment: "RFC 5869 A.3, no salt and no info",
      ikm: "0b".repeat(22),
      salt: "",
      info: "",
      length: 42,
      prk: "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
      okm: "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
    },
  ],
  invalid: [
    { comment: "length 0", ikm: "0b", salt: "", info: "", length: 0 },
    { comment: "length -1", ikm: "0b", salt: "", info: "", length: -1 },
    { comment: "more than 255 blocks", ikm: "0b", salt: "", info: "", length: 8161 },
  ],
};

const LONG_KEY = "aa".repeat(131);

export const hmacFile = {
  comment: "HMAC-SHA256. mac may be the beginning only, where the RFC truncates",
  source: "https://www.rfc-editor.org/rfc/rfc4231#section-4",
  valid: [
    {
      comment: "RFC 4231 case 1",
      key: "0b".repeat(20),
      data: text("Hi There"),
      mac: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
    },
    {
      comment: "RFC 4231 case 2, a key shorter than the output",
      key: text("Jefe"),
      data: text("what do ya want for nothing?"),
      mac: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    },
    {
      comment: "RFC 4231 case 3, key and data of a block and more",
      key: "aa".repeat(20),
      data: "dd".repeat(50),
      mac: "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
    },
    {
      comment: "RFC 4231 case 4",
      key: range(0x01, 0x19),
      data: "cd".repeat(50),
      mac: "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
    },
    {
      comment: "RFC 4231 case 5, truncated",
      key: "0c".repeat(20),
      data: text("Test With Truncation"),
      mac: "a3b6167473100ee06e0c796c2955552b",
    },
    {
      comment: "RFC 4231 case 6, a key longer than a block",
      key: LONG_KEY,
      data: text("Test Using Larger Than Block-Size Key - Hash Key First"),
      mac: "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
    },
    {
      comment: "RFC 4231 case 7, key and data longer than a block",
      key: LONG_KEY,
      data: text(
        "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm.",
      ),
      mac: "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
    },
  ],
  invalid: [],
};

interface AeadInputs {
  readonly comment: string;
  readonly key: string;
  readonly nonce: string;
  readonly aad: string;
  readonly plaintext: string;
}

/** Key, nonce, AAD and plaintext of the given lengths, sealed by node:crypto. */
const made = (v: string, plaintextBytes: number, aadBytes: number) => {
  const label = `${v}|${plaintextBytes}|${aadBytes}`;
  const inputs: AeadInputs = {
    comment: `node:crypto, plaintext of ${plaintextBytes} and AAD of ${aadBytes} bytes`,
    key: toHex(filler(`key|${label}`, 32)),
    nonce: toHex(filler(`nonce|${label}`, 12)),
    aad: toHex(filler(`aad|${label}`, aadBytes)),
    plaintext: toHex(filler(`plaintext|${label}`, plaintextBytes)),
  };
  const sealed = sealWith(
    v,
    fromHex(inputs.key),
    fromHex(inputs.nonce),
    fromHex(inputs.aad),
    fromHex(inputs.plaintext),
  );
  return { ...inputs, sealed: toHex(sealed) };
};

/** Flips one bit of a byte. */
const flip = (hex: string, byte: number, mask: number): string => {
  const bytes: Bytes = fromHex(hex);
  const at = byte < 0 ? bytes.length + byte : byte;
  bytes[at] = (bytes[at] as number) ^ mask;
  return toHex(bytes);
};

type Sealed = Omit<ReturnType<typeof made>, "plaintext">;

/** Modifications of a valid case, none of which may open. */
const refusals = (whole: ReturnType<typeof made>) => {
  const one: Sealed = {
    comment: whole.comment,
    key: whole.key,
    nonce: whole.nonce,
    aad: whole.aad,
    sealed: whole.sealed,
  };
  const tag = one.sealed.slice(-32);
  const changes: [string, Partial<Sealed>][] = [
    ["first bit of the tag", { sealed: flip(one.sealed, -16, 0x80) }],
    ["last bit of the tag", { sealed: flip(one.sealed, -1, 0x01) }],
    ["first bit of the ciphertext", { sealed: flip(one.sealed, 0, 0x80) }],
    ["last bit of the ciphertext", { sealed: flip(one.sealed, -17, 0x01) }],
    ["AAD flipped", { aad: flip(one.aad, 0, 0x01) }],
    ["AAD cut", { aad: one.aad.slice(0, -2) }],
    ["AAD longer by a zero", { aad: `${one.aad}00` }],
    ["first bit of the nonce", { nonce: flip(one.nonce, 0, 0x80) }],
    ["last bit of the nonce", { nonce: flip(one.nonce, -1, 0x01) }],
    ["key flipped", { key: flip(one.key, 0, 0x01) }],
    ["cut by a byte", { sealed: one.sealed.slice(0, -2) }],
    ["longer by a zero", { sealed: `${one.sealed}00` }],
    ["tag alone", { sealed: tag }],
    ["15 bytes", { sealed: tag.slice(2) }],
    ["nothing", { sealed: "" }],
    ["tag of zeros", { sealed: one.sealed.slice(0, -32) + "00".repeat(16) }],
  ];
  return changes.map(([comment, change]) => ({ ...one, ...change, comment }));
};

const LENGTHS = [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 256];

export const chacha20Poly1305File = {
  comment: "Suite 1: ChaCha20-Poly1305. sealed = ciphertext || 16-byte tag",
  source: "https://www.rfc-editor.org/rfc/rfc8439#section-2.8.2",
  v: "1",
  valid: [
    {
      comment: "RFC 8439 2.8.2",
      key: range(0x80, 0x9f),
      nonce: "070000004041424344454647",
      aad: "50515253c0c1c2c3c4c5c6c7",
      plaintext: text(
        "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.",
      ),
      sealed:
        "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691",
    },
    {
      comment: "RFC 8439 A.5",
      key: "1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0",
      nonce: "000000000102030405060708",
      aad: "f33388860000000000004e91",
      plaintext: text(
        "Internet-Drafts are draft documents valid for a maximum of six months and may be updated, replaced, or obsoleted by other documents at any time. It is inappropriate to use Internet-Drafts as reference material or to cite them other than as /\u201cwork in progress./\u201d",
      ),
      sealed:
        "64a0861575861af460f062c79be643bd5e805cfd345cf389f108670ac76c8cb24c6cfc18755d43eea09ee94e382d26b0bdb7b73c321b0100d4f03b7f355894cf332f830e710b97ce98c8a84abd0b948114ad176e008d33bd60f982b1ff37c8559797a06ef4f0ef61c186324e2b3506383606907b6a7c02b0f9f6157b53c867e4b9166c767b804d46a59b5216cde7a4e99040c5a40433225ee282a1b0a06c523eaf4534d7f83fa1155b0047718cbc546a0d072b04b3564eea1b422273f548271a0bb2316053fa76991955ebd63159434ecebb4e466dae5a1073a6727627097a1049e617d91d361094fa68f0ff77987130305beaba2eda04df997b714d6c6f2c29a6ad5cb4022b02709beead9d67890cbb22392336fea1851f38",
    },
    ...LENGTHS.map((length) => made("1", length, 13)),
  ],
  invalid: refusals(made("1", 40, 13)),
};

/** The suite takes 32 bytes and uses 16. */
const wide = (key: string): string => key + "5a".repeat(16);

export const aes128CcmFile = {
  comment:
    "Suite 2: AES-128-CCM with 12-byte nonce and 16-byte tag (RFC 3610 with L = 3, M = 16). No vector of RFC 3610 itself has these lengths (they have L = 2 and M = 8 or 10), so three come from Project Wycheproof (Apache-2.0, 'AES-CCM', group with ivSize 96, keySize 128, tagSize 128) and the others were made with node:crypto. key is 32 bytes as the contract derives it; the first 16 are used",
  source: "https://github.com/C2SP/wycheproof/blob/main/testvectors_v1/aes_ccm_test.json",
  v: "2",
  valid: [
    {
      comment: "Wycheproof tcId 12",
      key: wide("9415f925bcb41dc25e86c826dbc8bf68"),
      nonce: "bdffaa763b916ff0ee3f3ce4",
      aad: "705d676cd8a94451",
      plaintext: "feb36167eafc02c8e2bd6e13817686ba",
      sealed: "08db327a88be7b48f430fd7bfccdf502b7c249f810adacf99abded1f3b9130f2",
    },
    {
      comment: "Wycheproof tcId 13",
      key: wide("d97c9b043bdccfd59491a995e78f1696"),
      nonce: "ef423240358830df915506a3",
      aad: "3ddba7b3ab69c8b2",
      plaintext: "f047594a5cffda64303a80b2fa6a957169",
      sealed: "e0caf2a9d50f70ecaa43b4a287c3b34a99cff4c61882b413b686ff35b63a3a73de",
    },
    {
      comment: "Wycheproof tcId 21, AAD alone",
      key: wide("ef35b5c797bb6beedb513ba3d8aebd25"),
      nonce: "0576a1017ac00e49110c4cac",
      aad: "a386d5c44de8c6a5063adf5ba9f0b75e9ad1f239a530dd76d797554d7b037d7d",
      plaintext: "",
      sealed: "6966a1cf5729332b26fd3e3850b74865",
    },
    ...LENGTHS.map((length) => made("2", length, 13)),
    ...[1, 14, 15, 30, 60, 255, 256].map((aadLength) => made("2", 20, aadLength)),
  ],
  invalid: refusals(made("2", 40, 13)),
};
