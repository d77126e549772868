/**
 * Conformance of the packet reader, and of "refuse before any cryptography": a suite that counts
 * its calls must not be called while a role refuses.
 *
 * [portable]
 */
import { parsePacket } from "../crypto/packet.ts";
import type { Suite } from "../crypto/suite.ts";
import type { Version } from "../crypto/versions.ts";
import { toHex } from "../encoding/bytes.ts";
import { AgentSessions, DEFAULT_AGENT_LIMITS } from "../session/agent.ts";
import type { ClientEffect } from "../session/client.ts";
import { ClientSession, DEFAULT_CLIENT_TIMINGS } from "../session/client.ts";
import type { PacketCase, PacketRefusal, VectorFile } from "./files.ts";
import { expectSame } from "./report.ts";

interface Count {
  calls: number;
}

/** The same suite, counting all calls. */
const counted = (suite: Suite, count: Count): Suite => ({
  hmacKey: (key) => {
    count.calls++;
    return suite.hmacKey(key);
  },
  hmac: (key, data) => {
    count.calls++;
    return suite.hmac(key, data);
  },
  aeadKey: (v, key) => {
    count.calls++;
    return suite.aeadKey(v, key);
  },
  seal: (key, nonce, aad, plaintext) => {
    count.calls++;
    return suite.seal(key, nonce, aad, plaintext);
  },
  open: (key, nonce, aad, sealed) => {
    count.calls++;
    return suite.open(key, nonce, aad, sealed);
  },
});

const IDENTITY = "packets";
const SECRET = "e2e_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf3a0kuF";

const agentRefuses = (suite: Suite, version: Version, text: string): string => {
  const count: Count = { calls: 0 };
  const agent = new AgentSessions({
    suite: counted(suite, count),
    agentId: IDENTITY,
    agentToken: SECRET,
    version: version,
    bootCount: 1,
    deviceRandom: new Uint8Array(16),
    serialNumber: null,
    limits: DEFAULT_AGENT_LIMITS,
  });
  count.calls = 0;
  const verdict = agent.receive(text, 0);
  const reason = verdict.kind === "refused" ? verdict.reason : verdict.kind;
  return count.calls === 0 ? reason : `${reason} after cryptography`;
};

const clientRefuses = (suite: Suite, version: Version, text: string): string => {
  const count: Count = { calls: 0 };
  const client = new ClientSession({
    suite: counted(suite, count),
    random: (length) => new Uint8Array(length),
    agentId: IDENTITY,
    agentToken: SECRET,
    version: version,
    timings: DEFAULT_CLIENT_TIMINGS,
  });
  client.open(0);
  count.calls = 0;
  const effect = client.receive(text, 0)[0] as ClientEffect;
  const reason = effect.kind === "refused" ? effect.reason : "not refused";
  return count.calls === 0 ? reason : `${reason} after cryptography`;
};

export const checkPackets = (
  suite: Suite,
  file: VectorFile<PacketCase, PacketRefusal>,
  has: (v: string) => boolean,
  failures: string[],
): void => {
  for (const one of file.valid) {
    const where = `packets: ${one.comment}`;
    const packet = parsePacket(one.text);
    if (packet === null) {
      failures.push(`${where}: refused`);
    } else {
      expectSame(failures, `${where}: v`, packet.v, one.v);
      expectSame(failures, `${where}: sid`, packet.sid, one.sid);
      expectSame(failures, `${where}: seq`, packet.seq, one.seq);
      expectSame(failures, `${where}: p`, toHex(packet.sealed), one.sealed);
    }
  }
  for (const one of file.invalid) {
    const where = `packets: ${one.comment}`;
    if (one.refused_by === "any") {
      expectSame(failures, `${where}: reader`, parsePacket(one.text), null);
    }
    if (one.refused_by !== "client") {
      expectSame(failures, `${where}: agent`, agentRefuses(suite, "1", one.text), "malformed");
    }
    if (one.refused_by !== "agent") {
      expectSame(failures, `${where}: client`, clientRefuses(suite, "1", one.text), "malformed");
    }
  }
  // A packet of the other suite is refused as such, by both roles.
  for (const one of file.valid) {
    const other: Version = one.v === "1" ? "2" : "1";
    if (one.seq === 0 || !has(other)) continue;
    const where = `packets: ${one.comment}: of another suite`;
    expectSame(failures, `${where}: agent`, agentRefuses(suite, other, one.text), "version");
    expectSame(failures, `${where}: client`, clientRefuses(suite, other, one.text), "version");
  }
};
