/** What an access key lets a client see (section 1), as the hub knows it. */

/** Who owns an agent, and what selectors choose it by. */
export interface AgentLabels {
  readonly userId: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** How an access key's links end. */
export interface KeyEnd {
  readonly id: string;
  /** On the same clock as the session's; null: until it is removed. */
  readonly expiresAtMs: number | null;
}

export interface AccessKey extends KeyEnd {
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
