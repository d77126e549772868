/** `/releases`: firmware, its channels and its rollout. */
import { type Static, Type } from "typebox";
import {
  MAX_RELEASE_NAME_LENGTH,
  MAX_RELEASE_NUMBER,
  MAX_RELEASE_SIGNATURES,
  RELEASE_NAME_PATTERN,
  RELEASE_VERSION_PATTERN,
  SIGNATURE_HEADER,
} from "../../releases.ts";
import { MAX_REPORT_LENGTH } from "../../spec.ts";
import { OneOf } from "../one-of.ts";
import { PageQuery, page, Timestamp } from "./common.ts";
import { Nullable } from "./parts.ts";

const ReleaseName = (description: string, example: string) =>
  Type.String({
    minLength: 1,
    maxLength: MAX_RELEASE_NAME_LENGTH,
    pattern: RELEASE_NAME_PATTERN,
    description,
    examples: [example],
  });

export const ReleaseRuntime = ReleaseName(
  "What it runs on: the first word of an agent's `runtime`.",
  "espruino",
);
export const ReleaseChannel = ReleaseName("Which devices follow it.", "stable");
export const ReleaseVersion = Type.String({
  maxLength: MAX_REPORT_LENGTH,
  pattern: RELEASE_VERSION_PATTERN,
  description: "SemVer 2.0.0 without build metadata.",
  examples: ["1.4.0"],
});

export const ReleaseStatus = OneOf(["draft", "published", "yanked"]);
export type ReleaseStatus = Static<typeof ReleaseStatus>;

const Notes = Type.String({
  maxLength: 8192,
  description: "For people.",
  examples: ["Closes the valve while the relay is unreachable."],
});
const Percent = Type.Integer({
  minimum: 0,
  maximum: 100,
  description: "Percent of the devices. A device that is included at 10 is also included at 20.",
  examples: [10],
});
const Paused = Type.Boolean({ description: "While true, no device is offered the release." });

const Sha256 = Type.String({
  pattern: "^[0-9a-f]{64}$",
  examples: ["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"],
});
/** Base64url of 64 bytes. */
const signatureOver = (description: string) =>
  Type.String({
    pattern: "^[A-Za-z0-9_-]{86}$",
    description,
    examples: [
      "wQ1rE0Y3F5pGkH8yQ2n0bV9sJ4tLxU6cZ7aMdBfKqWhTgPjRvXnSyEoIu2C1D3G5H7J9K0L2M4N6P8Q1R3S5Tw",
    ],
  });
const Signature = signatureOver(
  "Ed25519 over the ASCII text `blindrelay-release|<runtime>|<channel>|<version>|<size>|<sha256 hex>`, as base64url.",
);
const KeyId = Type.String({
  pattern: "^[0-9a-f]{16}$",
  description: "The first 8 bytes of the public key's SHA-256, as hex.",
  examples: ["1f3870be274f6c49"],
});

const releaseNumber = (description: string, example: number) =>
  Type.Integer({
    minimum: 0,
    maximum: MAX_RELEASE_NUMBER,
    description,
    examples: [example],
  });
const List = releaseNumber(
  "Rises with every change of what a channel offers: a device takes none below its last.",
  7,
);
const NotAfter = releaseNumber("Unix seconds; later no device installs it.", 1_795_254_067);
const Signatures = Type.Array(
  Type.Object({
    key_id: KeyId,
    signature: signatureOver(
      "Ed25519 over the ASCII text `blindrelay-release-2|<runtime>|<channel>|<version>|<size>|<sha256 hex>|<list>|<not_after>`, as base64url.",
    ),
  }),
  {
    maxItems: MAX_RELEASE_SIGNATURES,
    description: "Of the second signed text, by different keys. For devices with a threshold.",
  },
);
/** Only of a release with the second signed text. */
const SecondForm = {
  list: Type.Optional(List),
  not_after: Type.Optional(NotAfter),
  signatures: Type.Optional(Signatures),
};

export const Release = Type.Object({
  id: Type.String({ examples: ["0d9c0c3e-5f5c-4a6b-9a2f-0f6f0a6d3c11"] }),
  runtime: ReleaseRuntime,
  channel: ReleaseChannel,
  version: ReleaseVersion,
  status: ReleaseStatus,
  notes: Notes,
  size: Nullable(
    Type.Integer({ description: "Bytes; null before the upload.", examples: [48211] }),
  ),
  sha256: Nullable(Sha256),
  signature: Nullable(Signature),
  key_id: Nullable(KeyId),
  ...SecondForm,
  rollout: Type.Object({
    percent: Percent,
    paused: Paused,
    offered: Type.Integer({ description: "Devices that were offered the release." }),
    confirmed: Type.Integer({
      description:
        "Devices that were offered the release and then logged in with it. Downloads are not counted.",
    }),
    running: Type.Integer({ description: "Those that ran it at their last login." }),
    left: Type.Integer({
      description:
        "Those that booted it and then logged in with an older version; they are not offered it again. If more than one in twenty of those that booted it did, a rollout below 100 percent is paused.",
    }),
  }),
  created_at: Timestamp,
  published_at: Nullable(Timestamp),
});
export type Release = Static<typeof Release>;

/** Unchecked on purpose: an identifier that cannot exist is 404 like any other unknown one. */
export const ReleaseParams = Type.Object({ id: Type.String({ examples: ["0d9c0c3e"] }) });

export const ReleaseCreate = Type.Object({
  runtime: ReleaseRuntime,
  channel: ReleaseChannel,
  version: ReleaseVersion,
  notes: Type.Optional(Notes),
});
export type ReleaseCreate = Static<typeof ReleaseCreate>;

/**
 * `published` requires an artifact; `yanked` is final. `list`, `not_after` and `signatures` come
 * together.
 */
export const ReleasePatch = Type.Object({
  status: Type.Optional(
    OneOf(["published", "yanked"], {
      description: "Publish a draft, or withdraw what was published.",
    }),
  ),
  notes: Type.Optional(Notes),
  rollout: Type.Optional(
    Type.Object({ percent: Type.Optional(Percent), paused: Type.Optional(Paused) }),
  ),
  ...SecondForm,
});
export type ReleasePatch = Static<typeof ReleasePatch>;

export const ReleaseQuery = Type.Object({
  ...PageQuery.properties,
  runtime: Type.Optional(ReleaseRuntime),
  channel: Type.Optional(ReleaseChannel),
  status: Type.Optional(ReleaseStatus),
});
export type ReleaseQuery = Static<typeof ReleaseQuery>;

export const ReleasePage = page(Release);
export type ReleasePage = Static<typeof ReleasePage>;

export const ArtifactHeaders = Type.Object({ [SIGNATURE_HEADER]: Signature });
export type ArtifactHeaders = Static<typeof ArtifactHeaders>;

/** The raw bytes; not validated here, because they are never in memory together. */
export const ArtifactBody = Type.Unknown({ description: "The firmware image." });
export const ArtifactQuery = Type.Object({
  ticket: Type.Optional(
    Type.String({
      maxLength: 128,
      description: "From the `url` of `releases/check`; replaces a token for one hour.",
    }),
  ),
});

export const CheckQuery = Type.Object({
  channel: ReleaseChannel,
  version: Type.String({
    minLength: 1,
    maxLength: MAX_REPORT_LENGTH,
    description: "What runs now, by SemVer.",
    examples: ["1.3.2"],
  }),
  runtime: Type.Optional(ReleaseRuntime),
});

export const CheckAnswer = Type.Object({
  update_available: Type.Boolean(),
  channel: ReleaseChannel,
  current: Type.String({ examples: ["1.3.2"] }),
  latest: Nullable(
    Type.Object({
      version: ReleaseVersion,
      runtime: Type.Optional(ReleaseRuntime), // relays that keep to the contract may leave it out
      url: Type.String({
        description: "Of the artifact; needs no token for an hour.",
        examples: ["https://relay.example/api/v1/releases/0d9c0c3e/artifact?ticket=1795254067-x"],
      }),
      sha256: Sha256,
      size: Type.Integer({ examples: [48211] }),
      signature: Signature,
      key_id: KeyId,
      ...SecondForm,
      notes: Notes,
      published_at: Timestamp,
    }),
  ),
});
export type CheckAnswer = Static<typeof CheckAnswer>;
