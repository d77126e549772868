/** `blindrelay release publish` and `release sign`: what signs releases and sends them. */
import type { KeyObject } from "node:crypto";
import { createReadStream } from "node:fs";
import { Failure, wholeNumber } from "@blindrelay/protocol/command-line";
import {
  ARTIFACT_MEDIA_TYPE,
  MAX_RELEASE_NUMBER,
  type ReleaseSignature,
  SIGNATURE_HEADER,
  type SignedRelease,
} from "@blindrelay/protocol/releases";
import type { Release } from "@blindrelay/protocol/schema/rest";
import { Option } from "commander";
import { accountRest } from "../account/account.ts";
import type { Command } from "../base/command.ts";
import { type JsonFlag, printResult, printStatus } from "../base/output.ts";
import { measure, readSigningKey, signListed, signRelease } from "../base/release-files.ts";
import { type Rest, RestFailure } from "../base/rest.ts";
import type { Context } from "./context.ts";
import { end } from "./times.ts";
import { releaseVersion } from "./version-flags.ts";

interface SignFlags extends JsonFlag {
  readonly runtime: string;
  readonly channel: string;
  readonly firmwareVersion: string;
  readonly key: readonly string[];
  readonly list?: number;
  /** Unix seconds. */
  readonly notAfter?: number;
}

interface PublishFlags extends SignFlags {
  readonly notes?: string;
  readonly percent?: number;
  readonly draft?: boolean;
}

export const percentage = wholeNumber(0, 100);
const listNumber = wholeNumber(0, MAX_RELEASE_NUMBER);

const KEY = "a private key, made by release keygen; repeatable";
const LIST = "a number that never falls: devices with a threshold take none below their last";
const NOT_AFTER = "until when such devices install it: 90d from now, or 2027-06-30";

/** A mandatory flag that may be given several times. */
export const repeatable = (flag: string, text: string): Option =>
  new Option(flag, text)
    .argParser((word: string, before: readonly string[] = []) => [...before, word])
    .makeOptionMandatory();

const runtimeOption = (): Option =>
  new Option("--runtime <name>", "what it runs on")
    .choices(["espruino", "moddable", "node"])
    .makeOptionMandatory();

export const addPublish = (release: Command, context: Context): void => {
  release
    .command("publish")
    .description("sign an artifact, upload it and publish it")
    .argument("<file>", "the firmware image")
    .addOption(runtimeOption())
    .requiredOption("--channel <name>", "which devices follow it")
    .requiredOption("--firmware-version <version>", "by SemVer", releaseVersion)
    .addOption(repeatable("--key <file>", KEY))
    .option("--list <n>", LIST, listNumber)
    .option("--not-after <time>", NOT_AFTER, end)
    .option("--notes <text>", "for people")
    .option("--percent <n>", "of the devices that get it at first (100)", percentage)
    .option("--draft", "upload only; publish it later")
    .option("--json", "one JSON document")
    .example(`
  blindrelay release publish pump.bin --runtime espruino --channel stable --firmware-version 1.4.0 \\
    --key release.pem --percent 10

Devices with a threshold take only what several keys have signed, with a number that rises with every
change of what the channel offers (--list) and an end (--not-after): give both. Holders of other keys
add their signatures with release sign, to a draft or to what is published.

If it fails, no draft remains; a draft that an interrupted publish left is completed. Publish firmware
for another runtime over REST. Needs the admin role.`)
    .action(async (file: string, flags: PublishFlags) => {
      const rest = accountRest(context.settings());
      const published = await publish(rest, file, flags);
      printResult(flags, published, `${published.id} ${describe(published)}`);
    });
};

export const addSign = (release: Command, context: Context): void => {
  release
    .command("sign")
    .description("add signatures to an uploaded release, by other keys or for another end")
    .argument("<file>", "the firmware image, as one has it oneself")
    .addOption(runtimeOption())
    .requiredOption("--channel <name>", "which devices follow it")
    .requiredOption("--firmware-version <version>", "by SemVer", releaseVersion)
    .addOption(repeatable("--key <file>", KEY))
    .requiredOption("--list <n>", LIST, listNumber)
    .requiredOption("--not-after <time>", NOT_AFTER, end)
    .option("--json", "one JSON document")
    .example(`
  blindrelay release sign pump.bin --runtime espruino --channel stable --firmware-version 1.4.0 \\
    --key other.pem --list 7 --not-after 2027-06-30

What is signed is what stands here, never what the relay says of it. Signatures that are there stay if
they are for the same list and the same end; others are replaced. Needs the admin role.`)
    .action(async (file: string, flags: SignFlags) => {
      const signed = await sign(accountRest(context.settings()), file, flags);
      printResult(flags, signed, `${signed.id} ${describe(signed)}`);
    });
};

interface SecondForm {
  readonly list: number;
  readonly not_after: number;
  readonly signatures: readonly ReleaseSignature[];
}

/** Null where neither a list nor an end is given, which then takes one key. */
const secondForm = (
  release: SignedRelease,
  keys: readonly KeyObject[],
  { list, notAfter: not_after }: SignFlags,
): SecondForm | null => {
  if (list === undefined && not_after === undefined && keys.length === 1) return null;
  if (list === undefined || not_after === undefined) {
    throw new Failure("usage", "several keys, a list or an end: give both --list and --not-after");
  }
  const made = keys.map((key) => signListed({ ...release, list, not_after }, key));
  const signatures = [...new Map(made.map((each) => [each.key_id, each])).values()];
  return { list, not_after, signatures };
};

const sign = async (rest: Rest, file: string, flags: SignFlags): Promise<Release> => {
  const { runtime, channel, firmwareVersion } = flags;
  const measured = await measure(file);
  const signed = { runtime, channel, version: firmwareVersion, ...measured };
  const second = secondForm(signed, flags.key.map(readSigningKey), flags) as SecondForm;
  const found = (await listReleases(rest, { runtime, channel })).find(
    ({ version }) => version === firmwareVersion,
  );
  if (found === undefined || found.sha256 === null) {
    const what = `${runtime} ${channel} ${firmwareVersion}`;
    throw new Failure("refused", `${what} is not uploaded: release publish --draft does that`);
  }
  if (found.sha256 !== measured.sha256) {
    throw new Failure("expectation", `the relay has other bytes than ${file}: nothing was signed`);
  }
  const ours = second.signatures.map(({ key_id }) => key_id);
  const isSame = found.list === second.list && found.not_after === second.not_after;
  const kept = isSame
    ? (found.signatures ?? []).filter(({ key_id }) => !ours.includes(key_id))
    : [];
  return rest.ask("Release", "PATCH", `/releases/${found.id}`, {
    ...second,
    signatures: [...kept, ...second.signatures],
  });
};

const publish = async (rest: Rest, file: string, flags: PublishFlags): Promise<Release> => {
  const { runtime, channel, firmwareVersion } = flags;
  const names = { runtime, channel, version: firmwareVersion };
  const measured = await measure(file);
  const signed = { ...names, ...measured };
  const keys = flags.key.map(readSigningKey);
  const signature = signRelease(signed, keys[0] as KeyObject);
  const second = secondForm(signed, keys, flags);
  const { id, isNew } = await draftOf(rest, names, flags.notes);
  const path = `/releases/${id}`;
  try {
    return await complete(rest, path, file, { signature, size: measured.size, second }, flags);
  } catch (error) {
    // What existed before this command is kept.
    if (isNew) {
      await rest.tell("DELETE", path).catch(({ message }: Error) => {
        printStatus(`the draft ${id} remains: ${message}`);
      });
    }
    throw error;
  }
};

interface Signatures {
  readonly signature: string;
  /** Bytes of the file. */
  readonly size: number;
  readonly second: SecondForm | null;
}

const complete = async (
  rest: Rest,
  path: string,
  file: string,
  { signature, size, second }: Signatures,
  flags: PublishFlags,
): Promise<Release> => {
  const uploaded = await rest.upload("Release", `${path}/artifact`, createReadStream(file), {
    "content-type": ARTIFACT_MEDIA_TYPE,
    "content-length": String(size),
    [SIGNATURE_HEADER]: signature,
  });
  if (flags.draft === true && second === null) return uploaded;
  return rest.ask("Release", "PATCH", path, {
    ...second,
    ...(flags.draft === true ? {} : { status: "published" }),
    ...(flags.percent === undefined ? {} : { rollout: { percent: flags.percent } }),
  });
};

type Names = Pick<SignedRelease, "runtime" | "channel" | "version">;

/** A new draft, or the existing one. */
const draftOf = async (
  rest: Rest,
  names: Names,
  notes: string | undefined,
): Promise<{ readonly id: string; readonly isNew: boolean }> => {
  try {
    const body = { ...names, ...(notes === undefined ? {} : { notes }) };
    const { id } = await rest.ask("Release", "POST", "/releases", body);
    return { id, isNew: true };
  } catch (error) {
    if (!(error instanceof RestFailure) || error.code !== "CONFLICT") throw error;
    const { runtime, channel, version: wanted } = names;
    const drafts = await listReleases(rest, { runtime, channel, status: "draft" });
    const draft = drafts.find((each) => each.version === wanted);
    if (draft === undefined) throw error;
    return { id: draft.id, isNew: false };
  }
};

export const listReleases = (rest: Rest, query: Record<string, string>): Promise<Release[]> =>
  rest.list("ReleasePage", "/releases", query);

export const describe = (release: Release): string =>
  `${release.runtime} ${release.channel} ${release.version}: ${[release.status, rolloutText(release), signedText(release)].filter((text) => text !== "").join(", ")}`;

export const rolloutText = ({ rollout }: Release): string =>
  rollout.paused ? `paused at ${rollout.percent} %` : `${rollout.percent} %`;

/** Such as "2 keys, list 7, until 2027-06-30T00:00:00Z". */
export const signedText = ({ list, not_after, signatures = [], key_id }: Release): string => {
  if (list === undefined || not_after === undefined) return key_id === null ? "" : "1 key";
  const keys = signatures.length === 1 ? "1 key" : `${signatures.length} keys`;
  return `${keys}, list ${list}, until ${textOfEnd(not_after)}`;
};

/** A time in Unix seconds; far ones are beyond what a Date holds. */
export const textOfEnd = (seconds: number): string => {
  const time = new Date(seconds * 1000);
  return Number.isNaN(time.getTime()) ? "a far end" : time.toISOString().replace(".000Z", "Z");
};
