import { expect, it } from "vitest";
import { parsePacket, sealPacket } from "../crypto/packet.ts";
import { extractPrk } from "../crypto/secret-keys.ts";
import { deriveSessionKeys } from "../crypto/session-keys.ts";
import { toBase64url } from "../encoding/base64url.ts";
import { asciiBytes, asciiText } from "../encoding/bytes.ts";
import { nodeSuite } from "../suites/node.ts";
import { AgentSessions, DEFAULT_AGENT_LIMITS } from "./agent.ts";
import { SmallAgentSessions } from "./small-agent.ts";

const suite = nodeSuite();
const IDENTITY = { agentId: "lamp-1", agentToken: "a secret of the tests, and long enough" };

it.each(["1", "2"] as const)(
  "an agent with little memory says byte for byte what others say, in version %s",
  (version) => {
    const options = {
      suite,
      ...IDENTITY,
      version,
      bootCount: 1,
      deviceRandom: new Uint8Array(16),
      serialNumber: null,
      limits: DEFAULT_AGENT_LIMITS,
    };
    const agents = [new AgentSessions(options), new SmallAgentSessions(options)] as const;
    const prk = extractPrk(suite, IDENTITY.agentId, IDENTITY.agentToken);
    const sealed = (sid: string, seq: number, text: string): string => {
      const { c2a } = deriveSessionKeys(suite, prk, version, sid);
      return sealPacket(suite, c2a, version, sid, seq, asciiBytes(text));
    };
    const both = <T>(of: (agent: AgentSessions) => T): T => {
      const [one, other] = agents.map(of) as [T, T];
      expect(other).toEqual(one);
      return one;
    };
    const answer = both((agent) =>
      agent.receive(sealed(toBase64url(new Uint8Array(16).fill(1)), 0, ""), 0),
    );
    const sid = parsePacket((answer as { text: string }).text)?.sid as string;
    const message = both((agent) => agent.receive(sealed(sid, 1, "ping"), 0));
    expect(message.kind === "message" && asciiText(message.plaintext)).toBe("ping");
    const forged = sealed(sid, 2, "x").replace('"seq":2', '"seq":3');
    expect(both((agent) => agent.receive(forged, 0).kind)).toBe("refused");
    const text = both((agent) => agent.seal(sid, asciiBytes("pong"))) as string;
    expect(text).toBe(
      sealPacket(
        suite,
        deriveSessionKeys(suite, prk, version, sid).a2c,
        version,
        sid,
        1,
        asciiBytes("pong"),
      ),
    );
  },
);
