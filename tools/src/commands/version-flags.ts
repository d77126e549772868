/** Versions of firmware as flags: one rule at the start, at a publish and at a check. */
import { isVersionText, RELEASE_VERSION_PATTERN } from "@blindrelay/protocol/releases";
import { InvalidArgumentError } from "commander";

/** A version that runs. Throws an InvalidArgumentError for other texts. */
export const version = (text: string): string => {
  if (isVersionText(text)) return text;
  throw new InvalidArgumentError(
    "A version by SemVer (https://semver.org), such as 1.4.0: three numbers, no v before them.",
  );
};

export const releaseVersion = (text: string): string => {
  if (new RegExp(RELEASE_VERSION_PATTERN).test(version(text))) return text;
  throw new InvalidArgumentError(
    "A release has no build metadata (+…): versions that differ only there are equal.",
  );
};
