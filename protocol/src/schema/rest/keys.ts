/** `/account/keys`: access keys, for programs and people who are to have less than the account. */
import { type Static, Type } from "typebox";
import { KEY_SCOPES, MAX_SELECTOR_LENGTH } from "../../selector.ts";
import { OneOf } from "../one-of.ts";
import { page, Timestamp, TokenText } from "./common.ts";
import { Nullable, PlainText } from "./parts.ts";

/** Of one account. */
export const MAX_KEYS = 100;

/** Not `uniqueItems`: TypeBox takes the square of a list's length to name what is there twice. */
const Scopes = Type.Array(OneOf(KEY_SCOPES), {
  minItems: 1,
  maxItems: KEY_SCOPES.length,
  description:
    "Each at most once. read: GET of agents and releases. call: session tokens and /wss. agents: all of /agents. releases: all of /releases that the account's role allows.",
  examples: [["call"]],
});

const KeyName = PlainText(64, "Unique among the account's keys.", "ci");

const Where = PlainText(
  MAX_SELECTOR_LENGTH,
  "A selector by id and label.KEY: other agents do not exist for the key.",
  "label.site=hall-7",
);

export const AccessKey = Type.Object({
  id: Type.String({ examples: ["0b8e4c1f-7a3d-4d0e-9a55-6c2f1b7d9e10"] }),
  name: KeyName,
  scopes: Scopes,
  where: Type.Union([Where, Type.Null()], { description: "Null: all agents, later ones too." }),
  expires_at: Type.Union([Timestamp, Type.Null()], { description: "Null: until it is removed." }),
  created_at: Timestamp,
  last_used_at: Type.Union([Timestamp, Type.Null()], { description: "To the minute." }),
});
export type AccessKey = Static<typeof AccessKey>;

export const AccessKeyCreate = Type.Object({
  name: KeyName,
  scopes: Scopes,
  where: Type.Optional(Nullable(Where)),
  expires_at: Type.Optional(Nullable(Timestamp)),
});
export type AccessKeyCreate = Static<typeof AccessKeyCreate>;

export const AccessKeyCreated = Type.Object({
  ...AccessKey.properties,
  api_token: TokenText(
    "key_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1LWkH1",
    "Answered once: only its hash is kept.",
  ),
});
export type AccessKeyCreated = Static<typeof AccessKeyCreated>;

export const AccessKeyPage = page(AccessKey);
export type AccessKeyPage = Static<typeof AccessKeyPage>;

/** Unchecked on purpose: an identifier that cannot exist is 404 like any other unknown one. */
export const AccessKeyParams = Type.Object({ id: Type.String() });
