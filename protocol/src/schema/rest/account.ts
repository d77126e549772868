/** `/account`: the user behind the credentials. */
import { type Static, Type } from "typebox";
import { GivenCode, GivenPassword, NewPassword, Role, Timestamp, Username } from "./common.ts";

export const User = Type.Object({
  id: Type.String({ examples: ["1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed"] }),
  username: Username,
  role: Role,
  totp_enabled: Type.Boolean(),
  created_at: Timestamp,
});
export type User = Static<typeof User>;

/** `password` is the new one. A code is required if TOTP is enabled. */
export const AccountPatch = Type.Object({
  current_password: GivenPassword,
  totp_code: Type.Optional(GivenCode),
  password: Type.Optional(NewPassword),
  totp_enabled: Type.Optional(
    Type.Literal(false, { description: "Disables TOTP, if the relay does not require it." }),
  ),
});
export type AccountPatch = Static<typeof AccountPatch>;
