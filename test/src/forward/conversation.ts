/**
 * Sessions between an agent and a client in one memory, from the start to their end, for those who
 * look at what is left of them. Runs on Node and in XS.
 */
import type { Suite, X25519 } from "@blindrelay/protocol/crypto";
import { ForwardAgentSessions } from "@blindrelay/protocol/forward-agent";
import { ForwardClientSession } from "@blindrelay/protocol/forward-client";
import { DEFAULT_AGENT_LIMITS, DEFAULT_CLIENT_TIMINGS } from "@blindrelay/protocol/session";

export const AGENT_ID = "lamp-1";
const CALLS = 5;

export interface Speakers {
  readonly suite: Suite;
  readonly x25519: X25519;
  readonly random: (length: number) => Uint8Array;
  readonly agentToken: string;
  readonly version: "3" | "4";
}

/** One start of the agent; the sids of its sessions, which have all ended. */
export const converse = (speakers: Speakers, sessions: number): string[] => {
  const { suite, x25519, random, agentToken, version } = speakers;
  const sids: string[] = [];
  const agent = new ForwardAgentSessions(
    {
      suite,
      agentId: AGENT_ID,
      agentToken,
      version,
      bootCount: 2,
      deviceRandom: random(16),
      serialNumber: null,
      limits: DEFAULT_AGENT_LIMITS,
    },
    { x25519, seed: random(32), deviceKey: null },
  );
  for (let n = 0; n < sessions; n++) {
    const client = new ForwardClientSession(
      { suite, random, agentId: AGENT_ID, agentToken, version, timings: DEFAULT_CLIENT_TIMINGS },
      { x25519, deviceKey: null },
    );
    const sent = (effects: ReturnType<typeof client.open>): string => {
      const [effect] = effects;
      if (effect?.kind !== "send") throw new Error("nothing was sent");
      return effect.text;
    };
    const answered = agent.receive(sent(client.open(0)), 0) as { text: string };
    const hello = agent.receive(sent(client.receive(answered.text, 0)), 0);
    const { reply, sid } = hello as { reply: string; sid: string };
    sids.push(sid);
    client.receive(reply, 0);
    for (let call = 0; call < CALLS; call++) {
      const { kind } = agent.receive(client.seal(new Uint8Array(100)) as string, 0);
      if (kind !== "message") throw new Error(kind);
      client.receive(agent.seal(sid, new Uint8Array(200)) as string, 0);
    }
    agent.close(sid);
    client.giveUp();
  }
  agent.end();
  return sids;
};
