/**
 * `blindrelay release`: signs and publishes firmware, shows what a device would be offered, and
 * verifies a file.
 */
import { createReadStream } from "node:fs";
import { Failure, wholeNumber } from "@blindrelay/protocol/command-line";
import {
  ARTIFACT_MEDIA_TYPE,
  SIGNATURE_HEADER,
  type SignedRelease,
} from "@blindrelay/protocol/releases";
import type { Release, ReleasePatch } from "@blindrelay/protocol/schema/rest";
import { type Command, Option } from "commander";
import { accountRest } from "../account/account.ts";
import {
  type JsonFlag,
  printJson,
  printResult,
  printStatus,
  printText,
  table,
} from "../base/output.ts";
import { isSignedBy, makeKey, measure, readPublicKey, signRelease } from "../base/release-files.ts";
import { type Rest, RestFailure } from "../base/rest.ts";
import { readJsonFile } from "../base/text-file.ts";
import type { Context } from "./context.ts";
import { releaseVersion, version } from "./version-flags.ts";

interface NameFlags extends JsonFlag {
  readonly runtime: string;
  readonly channel: string;
  readonly firmwareVersion: string;
}

interface PublishFlags extends NameFlags {
  readonly key: string;
  readonly notes?: string;
  readonly percent?: number;
  readonly draft?: boolean;
}

const percentage = wholeNumber(0, 100);

export const addRelease = (cli: Command, context: Context): void => {
  const release = cli
    .command("release")
    .description("firmware releases: sign, publish, roll out, check")
    .addHelpText("after", "\nExample:\n  blindrelay release list");

  release
    .command("keygen")
    .description("make a key that signs releases; the relay and the devices get its public half")
    .argument("<file>", "where the private key goes (PEM, mode 0600)")
    .option("--json", "one JSON document")
    .addHelpText("after", "\nExample:\n  blindrelay release keygen release.pem")
    .action((file: string, flags: JsonFlag) => {
      const made = makeKey(file);
      printResult(flags, made, made.public_key);
      printStatus(`keep ${file} off the relay; start that with --release-keys ${made.public_key}`);
    });

  release
    .command("publish")
    .description("sign an artifact, upload it and publish it")
    .argument("<file>", "the firmware image")
    .addOption(
      new Option("--runtime <name>", "what it runs on")
        .choices(["espruino", "moddable", "node"])
        .makeOptionMandatory(),
    )
    .requiredOption("--channel <name>", "which devices follow it")
    .requiredOption("--firmware-version <version>", "by SemVer", releaseVersion)
    .requiredOption("--key <file>", "the private key, made by release keygen")
    .option("--notes <text>", "for people")
    .option("--percent <n>", "of the devices that get it at first (100)", percentage)
    .option("--draft", "upload only; publish it later")
    .option("--json", "one JSON document")
    .addHelpText(
      "after",
      `
Example:
  blindrelay release publish pump.bin --runtime espruino --channel stable --firmware-version 1.4.0 \\
    --key release.pem --percent 10

If it fails, no draft remains; a draft that an interrupted publish left is completed. Publish firmware
for another runtime over REST. Needs the admin role.`,
    )
    .action(async (file: string, flags: PublishFlags) => {
      const rest = accountRest(context.settings());
      const published = await publish(rest, file, flags);
      printResult(flags, published, `${published.id} ${describe(published)}`);
    });

  release
    .command("check")
    .description(
      "show the release that a device of a version would be offered; with an account token, regardless of the rollout",
    )
    .requiredOption("--channel <name>", "the channel")
    .requiredOption("--firmware-version <version>", "what runs now", version)
    .option("--runtime <name>", "what it runs on (default: any)")
    .option("--json", "one JSON document")
    .addHelpText(
      "after",
      "\nExample:\n  blindrelay release check --channel stable --firmware-version 1.3.2 --json",
    )
    .action(async (flags: NameFlags) => {
      const query = new URLSearchParams({
        channel: flags.channel,
        version: flags.firmwareVersion,
        ...(flags.runtime === undefined ? {} : { runtime: flags.runtime }),
      });
      const rest = accountRest(context.settings());
      const checked = await rest.ask("CheckAnswer", "GET", `/releases/check?${query}`);
      printResult(
        flags,
        checked,
        checked.latest === null ? "nothing newer" : checked.latest.version,
      );
    });

  release
    .command("verify")
    .description("check a file against a release: size, SHA-256 and signature")
    .argument("<file>", "the firmware image")
    .requiredOption("--release <file>", "a release as JSON, as publish --json or list --json print")
    .requiredOption("--public-key <key>", "as base64url, or a PEM file")
    .option("--json", "one JSON document")
    .addHelpText(
      "after",
      `
Example:
  blindrelay release verify pump.bin --release release.json --public-key release.pem

Works offline. Exits with 1 if something does not match.`,
    )
    .action(async (file: string, flags: JsonFlag & { release: string; publicKey: string }) => {
      const problem = await mismatch(file, readRelease(flags.release), flags.publicKey);
      if (flags.json === true) printJson({ ok: problem === null, problem });
      if (problem !== null) throw new Failure("expectation", problem);
      if (flags.json !== true) printText("ok");
    });

  release
    .command("list")
    .description(
      "releases, newest first, and how many devices have booted each, run it, or left it",
    )
    .option("--channel <name>", "one channel only")
    .option("--json", "one JSON document")
    .addHelpText(
      "after",
      `
Example:
  blindrelay release list --channel stable

OFFERED counts devices that were offered the release, BOOTED those of them that logged in with it,
RUNNING those that did so at their last login, and LEFT those that then logged in with an older
version: it booted, failed, and the device fell back, or somebody flashed it. They are not offered it
again. If more than one in twenty of BOOTED left, a rollout below 100 % is paused.`,
    )
    .action(async (flags: JsonFlag & { channel?: string }) => {
      const query: Record<string, string> =
        flags.channel === undefined ? {} : { channel: flags.channel };
      const items = await listReleases(accountRest(context.settings()), query);
      printResult(flags, { items }, table(HEADER, items.map(row)));
    });

  release
    .command("set")
    .description("publish a draft, change a rollout, or withdraw a release")
    .argument("<id>", "the release's id")
    .option("--publish", "publish a draft")
    .option("--yank", "withdraw it for good; devices that have it keep it")
    .option("--percent <n>", "of the devices", percentage)
    .option("--pause", "offer it to nobody for now")
    .option("--resume", "end a pause")
    .option("--json", "one JSON document")
    .addHelpText("after", "\nExample:\n  blindrelay release set 0d9c0c3e-... --percent 50")
    .action(async (id: string, flags: SetFlags) => {
      const path = `/releases/${encodeURIComponent(id)}`;
      const changed = await accountRest(context.settings()).ask(
        "Release",
        "PATCH",
        path,
        patchOf(flags),
      );
      printResult(flags, changed, `${changed.id} ${describe(changed)}`);
    });
};

interface SetFlags extends JsonFlag {
  readonly publish?: boolean;
  readonly yank?: boolean;
  readonly percent?: number;
  readonly pause?: boolean;
  readonly resume?: boolean;
}

const patchOf = ({ publish: toPublish, yank, percent, pause, resume }: SetFlags): ReleasePatch => {
  if (toPublish === true && yank === true) throw new Failure("usage", "--publish or --yank");
  if (pause === true && resume === true) throw new Failure("usage", "--pause or --resume");
  const rollout = {
    ...(percent === undefined ? {} : { percent }),
    ...(pause === true || resume === true ? { paused: pause === true } : {}),
  };
  const patch: ReleasePatch = {
    ...(toPublish === true ? { status: "published" } : yank === true ? { status: "yanked" } : {}),
    ...(Object.keys(rollout).length === 0 ? {} : { rollout }),
  };
  if (Object.keys(patch).length === 0) throw new Failure("usage", "nothing to change: see --help");
  return patch;
};

const publish = async (rest: Rest, file: string, flags: PublishFlags): Promise<Release> => {
  const { runtime, channel, firmwareVersion } = flags;
  const names = { runtime, channel, version: firmwareVersion };
  const measured = await measure(file);
  const signature = signRelease({ ...names, ...measured }, flags.key);
  const { id, isNew } = await draftOf(rest, names, flags.notes);
  const path = `/releases/${id}`;
  try {
    return await complete(rest, path, file, signature, measured.size, flags);
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

const complete = async (
  rest: Rest,
  path: string,
  file: string,
  signature: string,
  size: number,
  flags: PublishFlags,
): Promise<Release> => {
  const uploaded = await rest.upload("Release", `${path}/artifact`, createReadStream(file), {
    "content-type": ARTIFACT_MEDIA_TYPE,
    "content-length": String(size),
    [SIGNATURE_HEADER]: signature,
  });
  if (flags.draft === true) return uploaded;
  return rest.ask("Release", "PATCH", path, {
    status: "published",
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

const listReleases = (rest: Rest, query: Record<string, string>): Promise<Release[]> =>
  rest.list("ReleasePage", "/releases", query);

const readRelease = (path: string): SignedRelease & { signature: string } => {
  const fields = readJsonFile(path, "the release") as Record<string, unknown> | null;
  const texts = ["runtime", "channel", "version", "sha256", "signature"];
  if (texts.every((name) => typeof fields?.[name] === "string") && fields?.size !== undefined) {
    return fields as unknown as SignedRelease & { signature: string };
  }
  throw new Failure("usage", `${path} is not a release with an artifact`);
};

/** What does not match, as a sentence; null if everything does. */
const mismatch = async (
  file: string,
  release: SignedRelease & { signature: string },
  publicKey: string,
): Promise<string | null> => {
  const key = readPublicKey(publicKey);
  const { size, sha256 } = await measure(file);
  if (size !== release.size) return `${file} has ${size} bytes, the release ${release.size}`;
  if (sha256 !== release.sha256) return `the SHA-256 of ${file} differs from the release's`;
  const signed = isSignedBy({ ...release, size, sha256 }, release.signature, key);
  return signed ? null : "that key did not sign this release";
};

const HEADER = ["RELEASE", "STATUS", "OFFERED", "BOOTED", "RUNNING", "LEFT", "ROLLOUT", "ID"];

const describe = (release: Release): string =>
  `${release.runtime} ${release.channel} ${release.version}: ${release.status}, ${rolloutText(release)}`;

const rolloutText = ({ rollout }: Release): string =>
  rollout.paused ? `paused at ${rollout.percent} %` : `${rollout.percent} %`;

const row = (release: Release): string[] => [
  `${release.runtime} ${release.channel} ${release.version}`,
  release.status,
  String(release.rollout.offered),
  String(release.rollout.confirmed),
  String(release.rollout.running),
  String(release.rollout.left),
  rolloutText(release),
  release.id,
];
