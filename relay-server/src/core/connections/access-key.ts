/** What an access key lets a client see (section 1), as the hub knows it. */

/** Who owns an agent, and what selectors choose it by. */
export interface AgentLabels {
  readonly userId: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Its session tokens end with it, so their end is its links' end, too. */
export interface AccessKey {
  readonly id: string;
  /** Whether its selector matches an agent; null: it has none, and sees all agents. */
  readonly matches: ((agentId: string, labels: AgentLabels["labels"]) => boolean) | null;
  /** The agents that it matches now; null: all. */
  readonly agents: readonly string[] | null;
}

/** The agents that a key sees. */
export interface View {
  readonly keyId: string;
  readonly userId: string;
  readonly matches: NonNullable<AccessKey["matches"]>;
  readonly agents: Set<string>;
}
