/**
 * `blindrelay release`: signs and publishes firmware, shows what a device would be offered, and
 * verifies a file.
 */
import { Failure, wholeNumber } from "@blindrelay/protocol/command-line";
import { MAX_RELEASE_SIGNATURES, type SignedRelease } from "@blindrelay/protocol/releases";
import type { Release, ReleasePatch } from "@blindrelay/protocol/schema/rest";
import { accountRest } from "../account/account.ts";
import type { Command } from "../base/command.ts";
import {
  type JsonFlag,
  printJson,
  printResult,
  printStatus,
  printText,
  table,
} from "../base/output.ts";
import {
  countSigners,
  isSignedBy,
  makeKey,
  measure,
  readPublicKey,
} from "../base/release-files.ts";
import { readJsonFile } from "../base/text-file.ts";
import type { Context } from "./context.ts";
import {
  addPublish,
  addSign,
  describe,
  listReleases,
  percentage,
  repeatable,
  rolloutText,
  signedText,
  textOfEnd,
} from "./release-publish.ts";
import { version } from "./version-flags.ts";

interface CheckFlags extends JsonFlag {
  readonly channel: string;
  readonly firmwareVersion: string;
  readonly runtime?: string;
}

interface VerifyFlags extends JsonFlag {
  readonly release: string;
  readonly publicKey: readonly string[];
  readonly threshold?: number;
}

export const addRelease = (cli: Command, context: Context): void => {
  const release = cli
    .command("release")
    .description("firmware releases: sign, publish, roll out, check")
    .example("blindrelay release list");

  release
    .command("keygen")
    .description("make a key that signs releases; the relay and the devices get its public half")
    .argument("<file>", "where the private key goes (PEM, mode 0600)")
    .option("--json", "one JSON document")
    .example("blindrelay release keygen release.pem")
    .action((file: string, flags: JsonFlag) => {
      const made = makeKey(file);
      printResult(flags, made, made.public_key);
      printStatus(`keep ${file} off the relay; start that with --release-keys ${made.public_key}`);
    });

  addPublish(release, context);
  addSign(release, context);

  release
    .command("check")
    .description(
      "show the release that a device of a version would be offered; with an account token, regardless of the rollout",
    )
    .requiredOption("--channel <name>", "the channel")
    .requiredOption("--firmware-version <version>", "what runs now", version)
    .option("--runtime <name>", "what it runs on (default: any)")
    .option("--json", "one JSON document")
    .example("blindrelay release check --channel stable --firmware-version 1.3.2 --json")
    .action(async (flags: CheckFlags) => {
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
        (checked.update_available && checked.latest?.version) || "nothing newer",
      );
    });

  release
    .command("verify")
    .description("check a file against a release: size, SHA-256 and signature")
    .argument("<file>", "the firmware image")
    .requiredOption("--release <file>", "a release as JSON, as publish --json or list --json print")
    .addOption(repeatable("--public-key <key>", "as base64url, or a PEM file; repeatable"))
    .option(
      "--threshold <n>",
      "so many of the keys must have signed, and it must not have ended",
      wholeNumber(1, MAX_RELEASE_SIGNATURES),
    )
    .option("--json", "one JSON document")
    .example(`
  blindrelay release verify pump.bin --release release.json --public-key release.pem

Works offline. Exits with 1 if something does not match.`)
    .action(async (file: string, flags: VerifyFlags) => {
      const problem = await mismatch(file, readRelease(flags.release), flags);
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
    .example(`
  blindrelay release list --channel stable

OFFERED counts devices that were offered the release, BOOTED those of them that logged in with it,
RUNNING those that did so at their last login, and LEFT those that then logged in with an older
version: it booted, failed, and the device fell back, or somebody flashed it. They are not offered it
again. If more than one in twenty of BOOTED left, a rollout below 100 % is paused.`)
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
    .example("blindrelay release set 0d9c0c3e-... --percent 50")
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
  const paused = pause === true || resume === true ? pause === true : undefined;
  const rollout = percent === undefined && paused === undefined ? undefined : { percent, paused };
  const status = toPublish === true ? "published" : yank === true ? "yanked" : undefined;
  if (status === undefined && rollout === undefined)
    throw new Failure("usage", "nothing to change: see --help");
  return { status, rollout };
};

type SavedRelease = SignedRelease &
  Partial<Pick<Release, "list" | "not_after" | "signatures">> & { readonly signature: string };

const readRelease = (path: string): SavedRelease => {
  const fields = readJsonFile(path, "the release") as Record<string, unknown> | null;
  const texts = ["runtime", "channel", "version", "sha256", "signature"];
  if (texts.every((name) => typeof fields?.[name] === "string") && fields?.size !== undefined) {
    return fields as unknown as SavedRelease;
  }
  throw new Failure("usage", `${path} is not a release with an artifact`);
};

/** What does not match, as a sentence; null if everything does. */
const mismatch = async (
  file: string,
  release: SavedRelease,
  { publicKey, threshold }: VerifyFlags,
): Promise<string | null> => {
  const keys = publicKey.map(readPublicKey);
  const { size, sha256 } = await measure(file);
  if (size !== release.size) return `${file} has ${size} bytes, the release ${release.size}`;
  if (sha256 !== release.sha256) return `the SHA-256 of ${file} differs from the release's`;
  if (threshold === undefined) {
    return isSignedBy(release, release.signature, keys) ? null : "no such key signed this release";
  }
  const { list, not_after, signatures = [] } = release;
  if (list === undefined || not_after === undefined)
    return "nobody signed it with a list and an end";
  const signers = countSigners({ ...release, list, not_after }, signatures, keys);
  if (signers < threshold) return `${signers} of these keys signed it, not ${threshold}`;
  return not_after * 1000 < Date.now() ? `it was good until ${textOfEnd(not_after)}` : null;
};

const HEADER = [
  "RELEASE",
  "STATUS",
  "OFFERED",
  "BOOTED",
  "RUNNING",
  "LEFT",
  "ROLLOUT",
  "SIGNED",
  "ID",
];

const row = (release: Release): string[] => [
  `${release.runtime} ${release.channel} ${release.version}`,
  release.status,
  String(release.rollout.offered),
  String(release.rollout.confirmed),
  String(release.rollout.running),
  String(release.rollout.left),
  rolloutText(release),
  signedText(release),
  release.id,
];
