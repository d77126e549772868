/** What several REST resources share: identifiers, times, problems and pages. */
import { type Static, type TSchema, Type } from "typebox";
import { AGENT_ID_PATTERN } from "../../spec.ts";
import { OneOf } from "../one-of.ts";

export const AgentId = Type.String({ pattern: AGENT_ID_PATTERN, examples: ["pump-7"] });

/** ISO 8601 in UTC with milliseconds. */
export const Timestamp = Type.String({
  format: "date-time",
  examples: ["2026-11-21T09:41:07.250Z"],
});

/** A secret in a response. The example is well-formed but belongs to nobody. */
export const TokenText = (example: string, description?: string) =>
  Type.String({ examples: [example], ...(description === undefined ? {} : { description }) });
export const AccountToken = TokenText("acct_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf3Bz7ex");
export const AgentToken = TokenText("agt_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf3c6lNx");

/** A response without a body. */
export const NoContent = Type.Null({ description: "Done; no content." });

export const Role = OneOf(["admin", "user"]);
export type Role = Static<typeof Role>;

export const USERNAME_PATTERN = "^[A-Za-z0-9._@-]{1,64}$";
export const Username = Type.String({
  pattern: USERNAME_PATTERN,
  description: "Compared byte for byte.",
  examples: ["ada"],
});

/**
 * Our decision: NIST SP 800-63B's minimum with a second factor; the maximum bounds hashing work.
 */
export const MIN_PASSWORD_LENGTH = 8;
export const MAX_PASSWORD_LENGTH = 256;
export const NewPassword = Type.String({
  minLength: MIN_PASSWORD_LENGTH,
  maxLength: MAX_PASSWORD_LENGTH,
  examples: ["a new long password"],
});

/**
 * A password or code that is compared, not set: any text within bounds, so that all wrong ones look
 * alike.
 */
export const GivenPassword = Type.String({
  maxLength: MAX_PASSWORD_LENGTH,
  examples: ["a long password"],
});
export const GivenCode = Type.String({
  maxLength: 32,
  description: "Six digits, or one of the recovery codes.",
  examples: ["492039"],
});

/** RFC 9457. Every response with a status of 400 or above has this body. */
export const Problem = Type.Object(
  {
    type: Type.String({ description: "A URI for this kind of problem." }),
    title: Type.String(),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    detail: Type.String(),
    code: Type.String({ description: "One of the error table's codes." }),
    request_id: Type.String({ description: "Also in the relay's log." }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          path: Type.String({ description: "A JSON pointer into `in`." }),
          in: Type.String({ description: "body, querystring, params or headers" }),
          message: Type.String(),
        }),
        { description: "With 422: each thing that is wrong." },
      ),
    ),
  },
  { $id: "Problem" },
);
export type Problem = Static<typeof Problem>;
export const PROBLEM_MEDIA_TYPE = "application/problem+json";

export const PAGE_LIMIT_DEFAULT = 50;
export const PAGE_LIMIT_MAX = 200;

const CURSOR_EXAMPLE = "MTc5NTI1NDA2NzI1MC9wdW1wLTc";

/** The query parameters of every list. */
export const PageQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: PAGE_LIMIT_MAX, default: PAGE_LIMIT_DEFAULT }),
  ),
  cursor: Type.Optional(
    Type.String({
      maxLength: 256,
      description: "`next_cursor` of the page before.",
      examples: [CURSOR_EXAMPLE],
    }),
  ),
});
export type PageQuery = Static<typeof PageQuery>;

/** The response of every list; `next_cursor` is null on the last page. */
export const page = <T extends TSchema>(item: T) =>
  Type.Object({
    items: Type.Array(item),
    next_cursor: Type.Union([Type.String(), Type.Null()], { examples: [CURSOR_EXAMPLE] }),
  });

/** As written by node. */
export const IDEMPOTENCY_HEADER = "idempotency-key";
export const IdempotencyHeaders = Type.Object({
  [IDEMPOTENCY_HEADER]: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      pattern: "^[!-~]*$",
      description:
        "Drawn by the caller for one request. If it is repeated within a day, the same request gets the first answer, with `Idempotency-Replayed: true`, and does nothing. The newest 1,000 of an account are remembered, and as many of all its access keys.",
      examples: ["3f1c2b9e-0d53-4a53-8a51-8d9e4c5b7a10"],
    }),
  ),
});
export type IdempotencyHeaders = Static<typeof IdempotencyHeaders>;
