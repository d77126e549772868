/**
 * Firmware releases: the text that is signed, and the order of versions. The signer,
 * the relay that accepts an upload and the device that installs it all use this file.
 *
 * [portable]
 */

/** SemVer 2.0.0 without build metadata: versions that differ only there are equal. */
export const RELEASE_VERSION_PATTERN =
  "^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?$";

/** For a runtime and a channel. No "|", because it separates the parts of the signed text. */
export const RELEASE_NAME_PATTERN = "^[a-z0-9][a-z0-9._-]*$";
export const MAX_RELEASE_NAME_LENGTH = 32;

/**
 * How an artifact is uploaded and downloaded, and the upload header that contains its signature.
 */
export const ARTIFACT_MEDIA_TYPE = "application/octet-stream";
export const SIGNATURE_HEADER = "release-signature";

export interface SignedRelease {
  readonly runtime: string;
  readonly channel: string;
  readonly version: string;
  /** Bytes. */
  readonly size: number;
  /** Lower-case hex. */
  readonly sha256: string;
}

/** The ASCII text that an Ed25519 signature covers (RFC 8032). */
export const releaseText = (release: SignedRelease): string =>
  `blindrelay-release|${release.runtime}|${release.channel}|${release.version}|${release.size}|${release.sha256}`;

/** The second form, which several keys sign. */
export interface ListedRelease extends SignedRelease {
  /** Rises with every change of what a channel offers; a device takes none below its last. */
  readonly list: number;
  /** Unix seconds; later no device installs it. */
  readonly not_after: number;
}

/** A key's id: so many first digits of its SHA-256 in hex. */
export const RELEASE_KEY_ID_DIGITS = 16;

export interface ReleaseSignature {
  readonly key_id: string;
  /** Base64url of 64 bytes: Ed25519 over listedReleaseText. */
  readonly signature: string;
}

/** Of one release: more than anybody's threshold, and the most that a device verifies. */
export const MAX_RELEASE_SIGNATURES = 16;
/** For `list` and `not_after`: both are decimal in the signed text. */
export const MAX_RELEASE_NUMBER = 2 ** 53 - 1;

/** The ASCII text that each of a release's `signatures` covers. */
export const listedReleaseText = (release: ListedRelease): string =>
  `blindrelay-release-2|${release.runtime}|${release.channel}|${release.version}|${release.size}|${release.sha256}|${release.list}|${release.not_after}`;

/** Verifies `signature` over the ASCII `text` with the key of that id, which is pinned. */
export type VerifyRelease = (keyId: string, text: string, signature: string) => boolean;

/** The pinned keys that signed, each once, in the order of `signatures`. */
export const releaseSigners = (
  release: ListedRelease,
  signatures: readonly ReleaseSignature[],
  pinned: readonly string[],
  verify: VerifyRelease,
): string[] => {
  const text = listedReleaseText(release);
  const signers: string[] = [];
  for (let i = 0; i < signatures.length && i < MAX_RELEASE_SIGNATURES; i++) {
    const { key_id: id, signature } = signatures[i] as ReleaseSignature;
    if (pinned.indexOf(id) < 0 || signers.indexOf(id) >= 0) continue;
    if (verify(id, text, signature)) signers.push(id);
  }
  return signers;
};

interface VersionParts {
  readonly core: readonly string[];
  /** Empty for a version that is not a pre-release. */
  readonly pre: readonly string[];
}

const DIGITS = "0123456789";

const isNumeric = (text: string): boolean => {
  for (let i = 0; i < text.length; i++) {
    if (DIGITS.indexOf(text.charAt(i)) < 0) return false;
  }
  return text.length > 0;
};

const isIdentifier = (text: string): boolean => {
  for (let i = 0; i < text.length; i++) {
    const c = text.charAt(i);
    const isLetter = (c >= "A" && c <= "Z") || (c >= "a" && c <= "z");
    if (!isLetter && c !== "-" && DIGITS.indexOf(c) < 0) return false;
  }
  return text.length > 0;
};

const hasLeadingZero = (text: string): boolean => text.length > 1 && text.charAt(0) === "0";

const allIdentifiers = (parts: readonly string[]): boolean => {
  for (const part of parts) if (!isIdentifier(part)) return false;
  return true;
};

/**
 * The parts of a version by SemVer 2.0.0, without build metadata; null if the text is not SemVer.
 */
const readVersion = (text: string): VersionParts | null => {
  const plus = text.indexOf("+");
  if (plus >= 0 && !allIdentifiers(text.substring(plus + 1).split("."))) return null;
  const main = plus < 0 ? text : text.substring(0, plus);
  const dash = main.indexOf("-");
  const core = (dash < 0 ? main : main.substring(0, dash)).split(".");
  const pre = dash < 0 ? [] : main.substring(dash + 1).split(".");
  if (core.length !== 3 || !allIdentifiers(pre)) return null;
  for (const part of core) if (!isNumeric(part) || hasLeadingZero(part)) return null;
  for (const part of pre) if (isNumeric(part) && hasLeadingZero(part)) return null;
  return { core: core, pre: pre };
};

/** As numbers of any length, because a double represents only 15 digits exactly. */
const compareNumeric = (a: string, b: string): number => {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
};

const compareIdentifiers = (a: string, b: string): number => {
  if (isNumeric(a) && isNumeric(b)) return compareNumeric(a, b);
  if (isNumeric(a)) return -1;
  if (isNumeric(b)) return 1;
  return a < b ? -1 : a > b ? 1 : 0;
};

const comparePre = (a: readonly string[], b: readonly string[]): number => {
  if (a.length === 0 || b.length === 0) return b.length - a.length;
  for (let i = 0; i < a.length && i < b.length; i++) {
    const order = compareIdentifiers(a[i] as string, b[i] as string);
    if (order !== 0) return order;
  }
  return a.length - b.length;
};

/** Whether a text is a SemVer 2.0.0 version, with or without build metadata. */
export const isVersionText = (text: string): boolean => readVersion(text) !== null;

/**
 * Whether version `a` is higher than version `b` (SemVer 2.0.0 section 11); false if either is not
 * a version.
 */
export const isAbove = (a: string, b: string): boolean => {
  const left = readVersion(a);
  const right = readVersion(b);
  if (left === null || right === null) return false;
  for (let i = 0; i < 3; i++) {
    const order = compareNumeric(left.core[i] as string, right.core[i] as string);
    if (order !== 0) return order > 0;
  }
  return comparePre(left.pre, right.pre) > 0;
};
