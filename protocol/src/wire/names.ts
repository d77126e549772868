/**
 * Every name in a link's messages (section 3), in one place: the codecs in this folder and the
 * schemas take them from here. Each is a constant, because the build for boards inlines constants.
 *
 * [portable]
 */

// Values of `type`
export const TYPE_AUTH = "auth";
export const TYPE_AUTH_RESPONSE = "auth_response";
export const TYPE_PING = "ping";
export const TYPE_PONG = "pong";
export const TYPE_AGENT_STATUS = "agent_status";
export const TYPE_RELAY = "relay";
export const TYPE_ERROR = "error";

/** In every message except the bare packet. */
export const FIELD_TYPE = "type";

// auth, and its answer
export const FIELD_API_TOKEN = "api_token";
export const FIELD_SESSION_TOKEN = "session_token";
export const FIELD_CLIENT_TYPE = "client_type";
export const FIELD_RUNTIME = "runtime";
export const FIELD_FIRMWARE_VERSION = "firmware_version";
export const FIELD_PRESENCE = "presence";
export const FIELD_RENEWS = "renews";
export const FIELD_RENEWED = "renewed";
export const FIELD_STATUS = "status";
export const STATUS_AUTHENTICATED = "authenticated";
export const STATUS_FAILED = "failed";
export const FIELD_EXPIRES_IN = "expires_in";
export const FIELD_MAX_REQUESTS = "max_requests";
export const FIELD_RETRY_AFTER = "retry_after";

// auth, agent_status, relay
export const FIELD_AGENT_ID = "agent_id";

// agent_status
export const FIELD_ONLINE = "online";
export const FIELD_TIMESTAMP = "timestamp";

// relay
export const FIELD_PAYLOAD = "payload";
export const FIELD_SIGNATURE = "signature";
/** Also in an error about such a message. */
export const FIELD_REQUEST_ID = "request_id";

// error, and a failed auth_response
export const FIELD_ERROR = "error";
export const FIELD_CODE = "code";
export const FIELD_RECONNECT_IN = "reconnect_in";

// A packet (section 2)
export const FIELD_V = "v";
/** Also in an error about a packet. */
export const FIELD_SID = "sid";
export const FIELD_SEQ = "seq";
export const FIELD_P = "p";
