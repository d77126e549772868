/** The owner's operations on an agent that affect its secrets and its link. */
import { randomBytes } from "node:crypto";
import { agentIdOf } from "@blindrelay/protocol";
import { addAgent, findAgent, removeAgent } from "../store/agents.ts";
import { noteAct } from "../store/audit.ts";
import type { Db } from "../store/open.ts";
import type { AgentRow } from "../store/tables.ts";
import { retireTokens } from "../store/tokens.ts";
import { noteLabels, sees } from "./access-keys.ts";
import { changeStore } from "./change-store.ts";
import type { ControlContext } from "./context.ts";
import type { Credential } from "./credentials.ts";
import { issuePersistent, repeatPersistent } from "./issue.ts";
import { holdQuotas } from "./quota-check.ts";

const RANDOM_LETTERS = 10; // 47 bits: two agents with the same name do not collide

interface NewAgent {
  readonly name: string;
  readonly agentId: string;
  /** JSON text. */
  readonly labels: string;
  readonly metadata: string;
}

/** Who does it: a user, perhaps with an access key. */
type Actor = Pick<Credential, "userId" | "key">;

/** Whether an agent exists for whoever does it. */
const isTheirs = async (tx: Db, actor: Actor, agentId: string): Promise<boolean> => {
  const row = await findAgent(tx, actor.userId, agentId);
  return row !== undefined && sees(actor, row);
};

/** Creates an agent and its relay token; null if the identifier is taken. */
export const createAgent = (
  context: ControlContext,
  { userId, key }: Actor,
  agent: NewAgent,
): Promise<{ row: AgentRow; token: string } | null> =>
  changeStore(context, userId, async (tx, nowMs, post) => {
    const { agentId } = agent;
    const bytes = Buffer.byteLength(agent.metadata);
    await holdQuotas(tx, userId, context.quotas, { agents: 1, bytes, insteadOf: 0 });
    const added = await addAgent(tx, {
      agent_id: agentId,
      user_id: userId,
      name: agent.name,
      labels: agent.labels,
      metadata: agent.metadata,
      created_at: nowMs,
    });
    const row = added ? await findAgent(tx, userId, agentId) : undefined;
    if (row === undefined) return null;
    const [subject, detail] = [agentId, { name: agent.name }];
    await noteAct(tx, nowMs, { actorId: userId, key, action: "agent.create", subject, detail });
    const token = await issuePersistent(tx, context.secrets, { userId, agentId }, nowMs);
    await noteLabels(tx, userId, agentId, post);
    return { row, token };
  });

/**
 * Makes a new relay token; the old one, its session tokens and its link end. Null: not this user's
 * agent.
 */
export const rotateAgentToken = (
  context: ControlContext,
  { userId, key }: Actor,
  agentId: string,
): Promise<{ token: string; rotatedAtMs: number } | null> =>
  changeStore(context, userId, async (tx, nowMs, post) => {
    if (!(await isTheirs(tx, { userId, key }, agentId))) return null;
    const act = { actorId: userId, key, action: "agent.rotate_token", subject: agentId } as const;
    await noteAct(tx, nowMs, act);
    const token = await issuePersistent(tx, context.secrets, { userId, agentId }, nowMs);
    await post("end_agent", agentId);
    return { token, rotatedAtMs: nowMs };
  });

/** Removes an agent, its tokens and its link; false if it is not this user's. */
export const deleteAgent = (
  context: ControlContext,
  { userId, key }: Actor,
  agentId: string,
): Promise<boolean> =>
  changeStore(context, userId, async (tx, nowMs, post) => {
    if (!(await isTheirs(tx, { userId, key }, agentId))) return false;
    if (!(await removeAgent(tx, userId, agentId))) return false;
    await retireTokens(tx, { userId, agentId }, nowMs);
    await noteAct(tx, nowMs, { actorId: userId, key, action: "agent.delete", subject: agentId });
    await post("forget_agent", agentId);
    return true;
  });

/** Returns an agent's relay token again, with an audit entry; null if there is none. */
export const exportAgentToken = (
  context: ControlContext,
  { userId, key }: Actor,
  agentId: string,
): Promise<string | null> =>
  context.store.write(async (tx) => {
    if (!(await isTheirs(tx, { userId, key }, agentId))) return null;
    const token = await repeatPersistent(tx, context.secrets, { userId, agentId });
    const act = { actorId: userId, key, action: "agent.export", subject: agentId } as const;
    if (token !== null) await noteAct(tx, context.nowMs(), act);
    return token;
  });

/** A readable part of the name, and random letters. */
export const makeAgentId = (name: string): string => agentIdOf(name, randomBytes(RANDOM_LETTERS));
