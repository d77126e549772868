/**
 * For tests of other packages, in this repository only: the control plane, the store and REST by
 * parts.
 */

export { noNatsServer, ownNatsServer } from "../bus/testing/nats-server.ts";
export { findCredential } from "../control/credentials.ts";
export { openData } from "../control/data-dir.ts";
export { issueLogin, issuePersistent, issueSession, repeatPersistent } from "../control/issue.ts";
export { hashPassword } from "../control/passwords.ts";
export { drawToken, hashToken } from "../control/secrets.ts";
export { storeLookups } from "../control/token-check.ts";
export { type Rest, startRest } from "../http/testing/test-rest.ts";
export { addAgent } from "../store/agents.ts";
export { addSession, endLogin } from "../store/sessions.ts";
export { postgres } from "../store/testing/engines.ts";
export { addUser, findUserByName } from "../store/users.ts";
export { makeCertificates, noOpenssl } from "./certificates.ts";
export { BROWSER_TIMEOUT_MS, CHROMIUM, CHROMIUM_FLAGS, HAS_CHROMIUM } from "./chromium.ts";
export { NATS_URL, noCluster } from "./nodes.ts";
export { noPostgresPrograms, type OwnPostgres, ownPostgres } from "./own-postgres.ts";
export { callRest, connectPeer, type RestResponse } from "./peer.ts";
