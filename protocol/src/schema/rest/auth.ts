/** `/auth/...`: what the relay requires, and how to get, renew and end credentials. */
import { type Static, Type } from "typebox";
import { OneOf } from "../one-of.ts";
import { User } from "./account.ts";
import { AccountToken, GivenCode, GivenPassword, Timestamp, TokenText } from "./common.ts";

export const AuthConfig = Type.Object({
  totp: OneOf(["required", "optional"]),
  registration: Type.Boolean({ description: "Whether users may create accounts themselves." }),
  session: Type.Object({
    ttl: Type.Integer({ description: "Seconds.", examples: [86400] }),
    max_requests: Type.Integer({ examples: [10000] }),
  }),
  lockout: Type.Object({
    failures: Type.Integer({ examples: [5] }),
    window: Type.Integer({ description: "Seconds.", examples: [300] }),
    duration: Type.Integer({ description: "Seconds.", examples: [600] }),
  }),
  packet_versions: Type.Array(Type.String(), { examples: [["1", "2", "3", "4"]] }),
  version: Type.String({ description: "Of this relay.", examples: ["0.1.0"] }),
});
export type AuthConfig = Static<typeof AuthConfig>;

export const LoginBody = Type.Object({
  username: Type.String({ maxLength: 256, examples: ["ada"] }),
  password: GivenPassword,
  totp_code: Type.Optional(GivenCode),
});
export type LoginBody = Static<typeof LoginBody>;

export const LoginAnswer = Type.Object({
  access_token: TokenText("login_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf3q5R22"),
  token_type: Type.Literal("Bearer"),
  expires_in: Type.Integer({ description: "Seconds.", examples: [3600] }),
  user: Type.Object({
    ...User.properties,
    api_token: Type.Union([AccountToken, Type.Null()], {
      description: "The account token; null until TOTP is enrolled, if the relay requires it.",
    }),
  }),
});
export type LoginAnswer = Static<typeof LoginAnswer>;

export const SessionAnswer = Type.Object({
  session_token: TokenText("sess_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1eADN2"),
  expires_at: Timestamp,
  expires_in: Type.Integer({ description: "Seconds.", examples: [86400] }),
  max_requests: Type.Integer({ examples: [10000] }),
});
export type SessionAnswer = Static<typeof SessionAnswer>;

export const RotateAccountAnswer = Type.Object({
  api_token: AccountToken,
  rotated_at: Timestamp,
});
export type RotateAccountAnswer = Static<typeof RotateAccountAnswer>;

/** Replacing an enrolment requires both; a first one requires neither, and the body is optional. */
export const TotpEnrollBody = Type.Object({
  current_password: Type.Optional(GivenPassword),
  totp_code: Type.Optional(GivenCode),
});
export type TotpEnrollBody = Static<typeof TotpEnrollBody>;

export const TotpEnrollAnswer = Type.Object({
  otpauth_uri: Type.String({
    examples: [
      "otpauth://totp/blindrelay:ada?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=blindrelay",
    ],
  }),
  secret: Type.String({
    description: "Base32, as authenticator apps take it.",
    examples: ["GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"], // RFC 6238's
  }),
});
export type TotpEnrollAnswer = Static<typeof TotpEnrollAnswer>;

export const TotpConfirmBody = Type.Object({ totp_code: GivenCode });
export type TotpConfirmBody = Static<typeof TotpConfirmBody>;

export const TotpConfirmAnswer = Type.Object({
  totp_enabled: Type.Literal(true),
  recovery_codes: Type.Array(Type.String(), {
    description: "Ten, shown once; each replaces one totp_code at a login.",
    examples: [["mz3k7-q4tdn"]],
  }),
});
export type TotpConfirmAnswer = Static<typeof TotpConfirmAnswer>;
