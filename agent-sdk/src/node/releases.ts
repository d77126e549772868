/**
 * Firmware updates on Node. The relay is asked but not trusted: an update is installed
 * only if a pinned key signed it for this runtime and channel, its version is higher than the
 * running one, and size and hash of the download match the signature. With a threshold that many
 * keys must have signed, it must not have ended, and no newer list may have been seen.
 */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, rename, rm, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { NO_LINK, takePlaceOf } from "@blindrelay/protocol/file-owner";
import { type HttpPort, readText, reasonOfAnswer, reasonOfError } from "@blindrelay/protocol/net";
import { nodeHttp, type ProxySetting } from "@blindrelay/protocol/net/node";
import { restBase } from "@blindrelay/protocol/relay-url";
import { isAbove, MAX_RELEASE_SIGNATURES } from "@blindrelay/protocol/releases";
import { ReleaseError } from "./errors.ts";
import { isCount, type ReleaseTrust, type Signed, trustOf } from "./release-trust.ts";

const CHECK_LIMIT_MS = 30_000;
/** The notes of a release have 10,000 characters at most. */
const MAX_CHECK_BYTES = 256 * 1024;
/** A download without a byte for this long counts as broken. */
const SILENCE_LIMIT_MS = 30_000;
/** How often an interrupted download is resumed without getting on. */
const ATTEMPTS = 5;
/** So many bytes that were not there yet count as getting on. */
const MIN_PROGRESS = 1024;
const PART_SUFFIX = ".part";

/** What is running, where to ask for updates, and which updates to accept. */
export interface ReleaseSource extends ReleaseTrust {
  /** The relay: http(s) base or ws(s) address. */
  readonly url: string;
  /** The agent's relay token (`agt_`), or any other token of its account. */
  readonly token: string;
  /**
   * The runtime that the firmware is built for, such as "node": the first word of the agent's
   * report.
   */
  readonly runtime: string;
  readonly channel: string;
  /** The version of the running firmware (SemVer). */
  readonly version: string;
  /** As in the options of `startAgent`. */
  readonly proxy?: ProxySetting;
}

/** A release with a verified signature and a version higher than the running one. */
export interface Update {
  readonly version: string;
  readonly url: string;
  readonly size: number;
  /** Lower-case hex. */
  readonly sha256: string;
  readonly notes: string;
}

/**
 * Asks for an update; null if there is none. Rejects with a ReleaseError if the relay cannot be
 * asked or offers something that must not be installed, and with a ConfigError for invalid keys.
 */
export const checkRelease = async (source: ReleaseSource): Promise<Update | null> => {
  const check = trustOf(source);
  const query = new URLSearchParams({
    channel: source.channel,
    version: source.version,
    runtime: source.runtime,
  });
  const latest = await ask(`${restBase(source.url)}/api/v1/releases/check?${query}`, source);
  if (latest === null) return null;
  const { version, size, sha256, url, notes } = latest;
  if (!isAbove(version, source.version)) {
    throw new ReleaseError("downgrade", `offered ${version}, and ${source.version} runs`);
  }
  const { runtime, channel } = source; // our own, never the relay's
  check({ runtime, channel, version, size, sha256 }, latest);
  return { version, url, size, sha256, notes };
};

/**
 * Downloads an update to `path`. The file appears only when it is complete and flushed, and what
 * lies on the disk has been verified. Rejects with a ReleaseError, and keeps an existing file. What
 * a bad line, or an address that has ended, interrupted stays in `path.part`, and the next call
 * goes on there, also for an update that was asked for anew.
 */
export const downloadRelease = async (
  update: Update,
  path: string,
  proxy?: ProxySetting,
): Promise<void> => {
  const part = path + PART_SUFFIX;
  const http = nodeHttp(proxy);
  const file = await onDisk(open(part, constants.O_RDWR | constants.O_CREAT | NO_LINK, 0o600));
  try {
    const { size } = await onDisk(file.stat());
    const kept = size <= update.size ? size : 0;
    await onDisk(file.truncate(kept));
    await checkSpace(dirname(part), update.size - kept);
    await fetchAll(update, file, kept, http);
    if (!(await isRight(update, file))) {
      // What was kept may be of another release.
      await onDisk(file.truncate(0));
      if (kept > 0) await fetchAll(update, file, 0, http);
      if (kept === 0 || !(await isRight(update, file))) {
        throw new ReleaseError("corrupt", "the artifact is not the one that was signed");
      }
    }
    takePlaceOf(file.fd, path, 0o777);
    await file.close();
    await onDisk(rename(part, path));
  } catch (error) {
    await file.close().catch(() => undefined);
    const problem = error instanceof ReleaseError ? error.problem : null;
    if (problem !== "unreachable" && problem !== "refused") await rm(part, { force: true });
    throw error;
  }
};

/** Flushes it first. */
const isRight = async (update: Update, file: FileHandle): Promise<boolean> => {
  await onDisk(file.sync());
  return (await hashOf(file)) === update.sha256;
};

/** An error of the disk is not one of the network: nothing is asked for again. */
const onDisk = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work;
  } catch (error) {
    throw new ReleaseError("disk", `the update cannot be stored: ${reasonOf(error)}`, error);
  }
};

/** Before anything is downloaded; a file system that cannot tell is tried. */
const checkSpace = async (folder: string, size: number): Promise<void> => {
  const { bavail, bsize } = await onDisk(statfs(folder));
  const free = bavail * bsize;
  if (free > 0 && free < size) {
    throw new ReleaseError(
      "disk",
      `the update has ${size} bytes, and ${folder} has room for ${free}`,
    );
  }
};

/** All of `bytes`, at `place` in the file: one write may take only some of them. */
const writeAll = async (file: FileHandle, bytes: Uint8Array, place: number): Promise<void> => {
  for (let at = 0; at < bytes.length; ) {
    const { bytesWritten } = await onDisk(file.write(bytes, at, null, place + at));
    if (bytesWritten === 0) throw new ReleaseError("disk", "the update cannot be stored: no room");
    at += bytesWritten;
  }
};

/** SHA-256 of what lies on the disk, lower-case hex. */
const hashOf = async (file: FileHandle): Promise<string> => {
  const hash = createHash("sha256");
  const stream = file.createReadStream({ start: 0, autoClose: false });
  await onDisk(pipeline(stream, hash));
  return hash.digest("hex");
};

/** The artifact after its first `kept` bytes, over as many connections as necessary. */
const fetchAll = async (
  update: Update,
  file: FileHandle,
  kept: number,
  http: HttpPort,
): Promise<void> => {
  let got = kept;
  // What comes again, because a range was not known, is no progress.
  let most = kept;
  let broken: unknown = null;
  for (let idle = 0; idle < ATTEMPTS && got < update.size; idle++) {
    try {
      for await (const { place, chunk } of bytesFrom(update, got, http)) {
        got = place + chunk.length;
        if (got > update.size) throw new ReleaseError("corrupt", "the artifact is too long");
        if (got - most >= MIN_PROGRESS) {
          most = got;
          idle = -1;
        }
        await writeAll(file, chunk, place);
      }
      broken = new Error("the connection ended early");
    } catch (error) {
      if (error instanceof ReleaseError) throw error;
      broken = error;
    }
  }
  if (got < update.size) {
    throw new ReleaseError(
      "unreachable",
      `the download was interrupted: ${reasonOf(broken)}`,
      broken,
    );
  }
};

interface Piece {
  readonly place: number;
  readonly chunk: Uint8Array;
}

/** From `from` on; from the beginning if something on the way does not know ranges. */
async function* bytesFrom(update: Update, from: number, http: HttpPort): AsyncGenerator<Piece> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_LIMIT_MS);
  try {
    const { status, chunks } = await http({
      url: update.url,
      method: "GET",
      signal: silence.signal,
      // The ETag is the hash: if the file has changed, the relay sends all of it.
      headers: from === 0 ? {} : { range: `bytes=${from}-`, "if-range": `"${update.sha256}"` },
    });
    let place = status === 200 ? 0 : from;
    if (status !== 200 && (status !== 206 || from === 0)) {
      silence.abort();
      throw new ReleaseError("refused", `the artifact's address answers ${status}`);
    }
    for await (const chunk of chunks) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_LIMIT_MS);
      yield { place, chunk };
      place += chunk.length;
    }
  } finally {
    clearTimeout(timer);
  }
}

type Offered = Update & Signed;

/**
 * The agent's only request over REST. It needs no more of a client than this, and the client SDK's
 * would bring the schemas of all answers.
 */
const ask = async (url: string, { token, proxy }: ReleaseSource): Promise<Offered | null> => {
  let status: number;
  let text: string;
  let strange: string;
  try {
    const headers = { authorization: `Bearer ${token}` };
    const signal = AbortSignal.timeout(CHECK_LIMIT_MS);
    const answer = await nodeHttp(proxy)({ url, method: "GET", headers, signal });
    status = answer.status;
    strange = reasonOfAnswer(status, answer.header("content-type"), answer.header("location")).text;
    text = (await readText(answer, MAX_CHECK_BYTES)) ?? "";
  } catch (error) {
    throw new ReleaseError("unreachable", `the relay was not reached: ${reasonOf(error)}`, error);
  }
  const { latest, detail, update_available } = asObject(text);
  if (status !== 200) {
    const kind = status >= 500 ? "unreachable" : "refused";
    const why = typeof detail === "string" ? detail : strange;
    throw new ReleaseError(kind, `the relay answers ${status} to a check: ${why}`);
  }
  // Other relays than ours name the latest release even if it is no update.
  if (latest === null || update_available === false) return null;
  // Relays from before the second form leave its members out.
  const offered: unknown = latest;
  if (isOffered(offered)) return offered;
  throw new ReleaseError("refused", "the relay's answer to a check is invalid");
};

/** Empty if the text is no JSON object. */
const asObject = (text: string): Record<string, unknown> => {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
};

const areSignatures = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.length <= MAX_RELEASE_SIGNATURES &&
  value.every((each) => typeof each?.key_id === "string" && typeof each.signature === "string");

const isOffered = (value: unknown): value is Offered => {
  if (typeof value !== "object" || value === null) return false;
  const fields = value as Record<string, unknown>;
  return (
    ["version", "url", "sha256", "signature", "notes"].every(
      (name) => typeof fields[name] === "string",
    ) &&
    isCount(fields.size) &&
    fields.size > 0 &&
    [fields.list, fields.not_after].every((each) => each === undefined || isCount(each)) &&
    areSignatures(fields.signatures ?? [])
  );
};

const reasonOf = (error: unknown): string => reasonOfError(error).text;
