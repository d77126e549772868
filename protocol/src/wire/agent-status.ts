/**
 * `agent_status` (section 3): relay to client, its unproven claim that an agent connected or
 * disconnected.
 *
 * [portable]
 */
import { encodeJson, own, ownString } from "../encoding/json.ts";
import {
  FIELD_AGENT_ID,
  FIELD_ONLINE,
  FIELD_TIMESTAMP,
  FIELD_TYPE,
  TYPE_AGENT_STATUS,
} from "./names.ts";

export interface AgentPresence {
  readonly kind: "agentStatus";
  readonly agentId: string;
  readonly online: boolean;
  /** ISO 8601 in UTC; empty if the relay gave none. */
  readonly timestamp: string;
}

export const encodeAgentStatus = (agentId: string, online: boolean, timestamp: string): string =>
  `{"${FIELD_TYPE}":"${TYPE_AGENT_STATUS}","${FIELD_AGENT_ID}":${encodeJson(agentId)},"${FIELD_ONLINE}":${online},"${FIELD_TIMESTAMP}":${encodeJson(timestamp)}}`;

/** Reads the fields of an `agent_status`; null if the agent or the status is missing. */
export const decodeAgentStatus = (fields: object): AgentPresence | null => {
  const agentId = ownString(fields, FIELD_AGENT_ID);
  const online = own(fields, FIELD_ONLINE);
  if (agentId === undefined || typeof online !== "boolean") return null;
  const timestamp = ownString(fields, FIELD_TIMESTAMP);
  return {
    kind: "agentStatus",
    agentId: agentId,
    online: online,
    timestamp: timestamp === undefined ? "" : timestamp,
  };
};
