/**
 * A running relay with people who have every kind of credential, valid and invalid. People are
 * written directly into its store, so that a test can have a new one whenever a request ended the
 * previous one's credentials.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { makeToken } from "@blindrelay/protocol";
import { initStore, startServer } from "@blindrelay/relay-server";
import {
  addAgent,
  addSession,
  addUser,
  drawToken,
  endLogin,
  findCredential,
  hashPassword,
  hashToken,
  issueLogin,
  issuePersistent,
  issueSession,
  openData,
} from "@blindrelay/relay-server/testing";
import type { Answer, Operation } from "./document.ts";
import type { Request } from "./requests.ts";
import type { Known } from "./shapes.ts";

const PASSWORD = "correct horse battery";

/** Every kind in `ApiUser.tokens`, and those that belong to nobody. */
export const CREDENTIALS = [
  "account",
  "login",
  "limited_login",
  "client_session",
  "agent",
  "agent_session",
  "admin_account",
  "admin_login",
  "expired_session",
  "used_up_session",
  "ended_login",
  "retired_account",
  "nobody",
  "mistyped",
  "unknown",
  "end_to_end",
  "basic",
] as const;
export type CredentialKind = (typeof CREDENTIALS)[number];

/** The kinds that let an operation for one of `holders` succeed. */
export const rightCredentials = (operation: Operation): CredentialKind[] => {
  if (operation.holders.length === 0) return ["nobody"];
  const right = operation.holders as CredentialKind[];
  const admin = (["account", "login"] as const).filter((kind) => right.includes(kind));
  return operation.path.includes("/admin") || operation.path.includes("/releases")
    ? [...right, ...admin.map((kind) => `admin_${kind}` as const), "admin_account"]
    : right;
};

export interface ApiUser {
  readonly username: string;
  readonly tokens: Readonly<Record<CredentialKind, string | null>>;
  /** Values that the relay knows, by the name of the member or parameter. */
  readonly known: Known;
}

export interface TestedRelay {
  readonly url: string;
  person(): Promise<ApiUser>;
  send(request: Request, person: ApiUser, address?: string): Promise<Answer>;
  /** A GET without credentials. */
  get(path: string): Promise<Answer>;
  close(): Promise<void>;
}

export const startTestedRelay = async (): Promise<TestedRelay> => {
  const data = mkdtempSync(join(tmpdir(), "blindrelay-conformance-"));
  await initStore({ data, username: "admin", password: PASSWORD, totp: false });
  const server = await startServer({
    data,
    port: 0,
    metricsPort: 0,
    trustedProxies: ["127.0.0.1"],
    logLevel: "silent",
  });
  const { store, secrets } = await openData({ data });
  const { db } = store;
  const passwordHash = await hashPassword(PASSWORD);
  const agent = new Agent({ keepAlive: true });
  const url = new URL(server.url);
  let addresses = 0;

  const user = async (role: "admin" | "user") => {
    const id = randomUUID();
    const username = `u-${id.slice(0, 13)}`;
    const created_at = Date.now();
    await addUser(db, {
      id,
      username,
      role,
      password_hash: passwordHash,
      totp_secret: null,
      totp_confirmed: 0,
      created_at,
    });
    const account = () => issuePersistent(db, secrets, { userId: id, agentId: null }, Date.now());
    const login = async (limited = false) => (await issueLogin(db, id, limited, Date.now())).token;
    return { id, username, account, login };
  };

  const sessionOf = async (token: string, nowMs = Date.now()) => {
    const finding = await findCredential(db, token, Date.now());
    if (!("credential" in finding)) throw new Error("no such credential");
    return issueSession(store, finding.credential, nowMs);
  };

  const deviceOf = async (userId: string) => {
    const agentId = `pump-${randomBytes(6).toString("hex")}`;
    const row = { agent_id: agentId, user_id: userId, name: "Pump", metadata: "{}" };
    await addAgent(db, { ...row, created_at: Date.now() });
    return { agentId, token: await issuePersistent(db, secrets, { userId, agentId }, Date.now()) };
  };

  const person = async (): Promise<ApiUser> => {
    const [self, other, admin] = [await user("user"), await user("user"), await user("admin")];
    const retired = await self.account();
    const account = await self.account();
    const [device, foreign] = [await deviceOf(self.id), await deviceOf(other.id)];
    const ended = await self.login();
    await endLogin(db, hashToken(ended), Date.now());
    const usedUp = drawToken("session");
    await addSession(db, {
      hash: hashToken(usedUp),
      kind: "client",
      user_id: self.id,
      agent_id: null,
      parent: hashToken(account),
      limited: 0,
      created_at: Date.now(),
      expires_at: Date.now() + 3_600_000,
    });
    await db
      .updateTable("sessions")
      .set({ requests_used: 10_000 })
      .where("hash", "=", hashToken(usedUp))
      .execute();
    return {
      username: self.username,
      tokens: {
        account,
        login: await self.login(),
        limited_login: await self.login(true),
        client_session: (await sessionOf(account)).token,
        agent: device.token,
        agent_session: (await sessionOf(device.token)).token,
        admin_account: await admin.account(),
        admin_login: await admin.login(),
        expired_session: (await sessionOf(account, Date.now() - 2 * 86_400_000)).token,
        used_up_session: usedUp,
        ended_login: ended,
        retired_account: retired,
        nobody: null,
        mistyped: `${account.slice(0, -1)}${account.endsWith("0") ? "1" : "0"}`,
        unknown: makeToken("account", randomBytes(32)),
        end_to_end: makeToken("e2e", randomBytes(32)),
        basic: "basic",
      },
      known: {
        agent_id: [device.agentId, device.agentId, foreign.agentId, "nobody-knows-me"],
        id: [self.id, other.id, admin.id, randomUUID()],
        username: [self.username, other.username, `new-${randomUUID().slice(0, 8)}`],
        password: [PASSWORD],
        current_password: [PASSWORD, PASSWORD, "wrong password"],
        version: ["1.4.0", "0.9.0-rc.1", "not a version"],
        channel: ["stable", "beta"],
      },
    };
  };

  const exchange = (
    method: string,
    path: string,
    headers: Record<string, string>,
    body: Buffer | null,
  ) =>
    new Promise<Answer>((resolve, reject) => {
      const { hostname, port } = url;
      const sent = httpRequest({ agent, hostname, port, method, path, headers }, (answer) => {
        buffer(answer).then((bytes) => {
          const status = answer.statusCode ?? 0;
          resolve({ status, headers: answer.headers, body: bytes });
        }, reject);
      });
      sent.on("error", reject);
      sent.end(body ?? undefined);
    });

  return {
    url: server.url,
    person,
    send: (request, somebody, address) => {
      // Failures lock an address out, so each request comes from a different one.
      addresses += 1;
      const own = `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses & 255}`;
      const token = somebody.tokens[request.credential as CredentialKind];
      const authorization = token === "basic" ? "Basic dTpw" : `Bearer ${token}`;
      return exchange(
        request.method,
        request.path,
        {
          ...request.headers,
          "x-forwarded-for": address ?? own,
          ...(token === null ? {} : { authorization }),
          ...(request.contentType === null ? {} : { "content-type": request.contentType }),
          ...(request.body === null ? {} : { "content-length": String(request.body.length) }),
        },
        request.body,
      );
    },
    get: (path) => exchange("GET", path, {}, null),
    close: async () => {
      agent.destroy();
      await store.close();
      await server.stop();
      rmSync(data, { recursive: true });
    },
  };
};
