/**
 * Texts of the documents that no schema contains: groups of operations, and kinds of credentials.
 */
import { HOLDER_NAMES, type Holder } from "../../control/credentials.ts";
import type { Access } from "../base/access.ts";

/** In reading order. */
export const TAGS = [
  { name: "auth", description: "Logging in and out, tokens and the second factor." },
  { name: "account", description: "The user behind the credentials." },
  { name: "agents", description: "The devices of an account." },
  { name: "releases", description: "Firmware: uploads, channels, rollouts, and what devices ask." },
  { name: "admin", description: "Users, figures and the audit log; for the admin role." },
  { name: "link", description: "The WebSocket that agents and clients hold." },
  { name: "health", description: "For load balancers and supervisors." },
  { name: "documentation", description: "The service's description of itself." },
];

/** A group by the first segment after `/api/v1`. */
export const tagOf = (path: string): string => {
  const first = path.replace(/^\/api\/v\d+/, "").split("/")[1] ?? "";
  if (first === "api") return "documentation";
  return first === "wss" ? "link" : first;
};

const scheme = (holder: Holder, more: string) => ({
  type: "http",
  scheme: "bearer",
  description: `${HOLDER_NAMES[holder]}: ${more}`,
});

export const SCHEMES = {
  account: scheme("account", "a person's programs; until it is rotated."),
  login: scheme("login", "a person who logged in; one hour."),
  key: scheme("key", "what its scopes and its selector allow; until it ends or is removed."),
  client_session: scheme("client_session", "reads, and opens the link; 24 hours."),
  agent: scheme("agent", "one device; until it is rotated."),
  agent_session: scheme("agent_session", "one device, 24 hours."),
} satisfies Record<Holder, object>;

/** One of these is enough; empty if anyone may call. */
export const securityOf = (access: Access | null): object[] =>
  access === null
    ? []
    : [...access.holders, ...(access.scopes === undefined ? [] : ["key"])].map((holder) => ({
        [holder]: [],
      }));
