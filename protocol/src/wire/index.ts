export type { AgentPresence } from "./agent-status.ts";
export { decodeAgentStatus, encodeAgentStatus } from "./agent-status.ts";
export type { AgentReport, AuthMessage, ClientType, Credentials } from "./auth.ts";
export { decodeAuth, encodeAgentAuth, encodeClientAuth, isReport } from "./auth.ts";
export type { Authenticated, AuthFailed, ClientAuthenticated } from "./auth-response.ts";
export { decodeAuthResponse, encodeAuthenticated, encodeAuthFailed } from "./auth-response.ts";
export type { AgentsPacket, ClientsPacket, Envelope, Form } from "./envelope.ts";
export {
  BARE,
  decodeEnvelope,
  decodeEnvelopeForAgent,
  decodeEnvelopeForClient,
  encodeEnvelope,
  encodeInForm,
  withAgentId,
} from "./envelope.ts";
export type { RelayError, Subject } from "./error.ts";
export { decodeError, encodeError, encodeRestarting } from "./error.ts";
export type { MessageForAgent } from "./for-agent.ts";
export { decodeForAgent } from "./for-agent.ts";
export type { MessageForClient } from "./for-client.ts";
export { decodeForClient } from "./for-client.ts";
export type { MessageForRelay, PacketHead } from "./for-relay.ts";
export { decodeForRelay } from "./for-relay.ts";
export type { PacketFields } from "./packet.ts";
export { bindablePart, decodePacket, encodePacket, firstPart } from "./packet.ts";
export { PING_TEXT, PONG_TEXT } from "./ping.ts";
export type { Unknown, Unreadable } from "./unreadable.ts";
export { UNKNOWN, UNREADABLE } from "./unreadable.ts";
