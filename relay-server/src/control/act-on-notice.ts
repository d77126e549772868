/** What a notice of the store does to the links of this relay. */
import type { Hub } from "../core/hub.ts";
import type { Notice } from "../store/notices.ts";
import type { ControlContext } from "./context.ts";

/** Executes a notice on this relay. */
export const actOn = (
  { kind, subject }: Notice,
  hub: Hub,
  { lockout, usernameLockout }: Pick<ControlContext, "lockout" | "usernameLockout">,
  nowMs: number,
): void => {
  const acts: { readonly [kind in Notice["kind"]]: () => void } = {
    unlock: () => {
      lockout.forgive(subject);
      usernameLockout.forgive(subject);
    },
    end_agent: () => hub.endAgent(subject, "REVOKED", nowMs),
    forget_agent: () => hub.forgetAgent(subject, "REVOKED", nowMs),
    end_clients: () => hub.endClients(subject, "REVOKED", nowMs),
    end_user: () => hub.endUser(subject, "REVOKED", nowMs),
    end_session: () => hub.endSession(subject, "REVOKED", nowMs),
    end_key: () => hub.endKey(subject, "REVOKED", nowMs),
    agent_labels: () => hub.relabel(subject),
  };
  // A newer version on the same store may post others.
  acts[kind]?.();
};
