/** `/admin`: users, figures and the audit log, for the admin role. */
import { type Static, Type } from "typebox";
import { OneOf } from "../one-of.ts";
import { User } from "./account.ts";
import { NewPassword, PageQuery, page, Role, Timestamp, Username } from "./common.ts";

export const AdminUser = Type.Object({
  ...User.properties,
  disabled: Type.Boolean({
    description: "Whether the user is disabled: neither the user nor their agents can log in.",
  }),
});
export type AdminUser = Static<typeof AdminUser>;

export const AdminUserPage = page(AdminUser);
export type AdminUserPage = Static<typeof AdminUserPage>;

/** Unchecked on purpose: an identifier that cannot exist is 404 like any other unknown one. */
export const UserParams = Type.Object({
  id: Type.String({ examples: ["5b0a6f0e-3f0c-4a55-9d4e-0c6a8b0c7d21"] }),
});

export const UserCreate = Type.Object({
  username: Username,
  password: NewPassword,
  role: Role,
});
export type UserCreate = Static<typeof UserCreate>;

export const UserPatch = Type.Object({
  role: Type.Optional(Role),
  disabled: Type.Optional(Type.Boolean()),
  password: Type.Optional(NewPassword),
  totp_enabled: Type.Optional(
    Type.Literal(false, { description: "Removes a second factor that its owner has lost." }),
  ),
});
export type UserPatch = Static<typeof UserPatch>;

const Count = Type.Integer({ minimum: 0, examples: [12] });
const Milliseconds = Type.Number({ minimum: 0, examples: [0.8] });

export const AdminStats = Type.Object({
  uptime_s: Count,
  versions: Type.Object({
    relay: Type.String({ examples: ["0.1.0"] }),
    node: Type.String({ examples: ["26.10.0"] }),
  }),
  users: Count,
  agents: Type.Object({ total: Count, online: Count }),
  connections: Type.Object(
    { client: Count, agent: Count, firmware: Count, waiting: Count, closing: Count },
    { description: "By their client_type; `waiting` have not authenticated yet." },
  ),
  messages: Type.Object({
    forwarded: Count,
    dropped: Type.Record(Type.String(), Count, {
      description: "Not forwarded, by reason.",
      examples: [{ AGENT_OFFLINE: 3 }],
    }),
  }),
  auth_failures: Type.Integer({
    minimum: 0,
    description: "Counted towards lockouts, over REST and links together.",
    examples: [4],
  }),
  lockouts: Count,
  queue_bytes: Type.Integer({ minimum: 0, description: "Waiting for receivers.", examples: [0] }),
  event_loop_delay: Type.Object(
    { mean_ms: Milliseconds, p99_ms: Milliseconds, max_ms: Milliseconds },
    { description: "Since the last request for it." },
  ),
});
export type AdminStats = Static<typeof AdminStats>;

/** `<what>.<what was done to it>` */
export const AuditAction = OneOf([
  "user.create",
  "user.role",
  "user.disable",
  "user.enable",
  "user.password",
  "user.totp_enable",
  "user.totp_disable",
  "user.rotate_token",
  "user.delete",
  "user.unlock",
  "agent.create",
  "agent.rotate_token",
  "agent.export",
  "agent.delete",
  "release.create",
  "release.upload",
  "release.sign",
  "release.publish",
  "release.rollout",
  "release.yank",
  "release.delete",
  "key.create",
  "key.delete",
  "relay.rekey",
]);
export type AuditAction = Static<typeof AuditAction>;

export const AuditEntry = Type.Object({
  id: Type.String({ examples: ["a7c4b6f2-0d0e-4c55-8f0b-5d2b7c1e9a10"] }),
  at: Timestamp,
  actor: Type.Union([Type.Object({ id: Type.String(), username: Username }), Type.Null()], {
    description:
      "Null for `blindrelay-server` commands run on the data folder, and for the relay itself.",
  }),
  action: AuditAction,
  subject: Type.String({
    description: "The identifier of the user, agent, release or access key.",
    examples: ["pump-7"],
  }),
  detail: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
    description:
      "Names, versions, roles, and under `key` the name of the access key that did it; never a secret.",
    examples: [{ name: "Pump" }],
  }),
});
export type AuditEntry = Static<typeof AuditEntry>;

export const AuditQuery = Type.Object({
  ...PageQuery.properties,
  action: Type.Optional(AuditAction),
  actor_id: Type.Optional(
    Type.String({
      pattern: "^[A-Za-z0-9-]{1,64}$",
      examples: ["5b0a6f0e-3f0c-4a55-9d4e-0c6a8b0c7d21"],
    }),
  ),
  subject: Type.Optional(Type.String({ pattern: "^[A-Za-z0-9_-]{1,64}$", examples: ["pump-7"] })),
});
export type AuditQuery = Static<typeof AuditQuery>;

export const AuditPage = page(AuditEntry);
export type AuditPage = Static<typeof AuditPage>;
