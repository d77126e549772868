/**
 * What the benchmark and its generator send each other over IPC. Peers are described by their bytes
 * (latin1 texts), so the generator knows no protocol and costs almost nothing: all messages of a
 * direction are the same bytes.
 */

export interface PeerPlan {
  readonly port: number;
  /** WebSocket; null: the bytes go over TCP as they are. */
  readonly ws: WebSocketPlan | null;
  /** What the server may say at any time, and the answer that it wants; null for nothing. */
  readonly aside: { readonly hear: string; readonly answer: string } | null;
  /** Said in turn after connecting, each once what the one before waits for has come. */
  readonly hello: readonly Step[];
}

export interface WebSocketPlan {
  readonly path: string;
  readonly protocol: string | null;
  readonly binary: boolean;
}

export interface Step {
  readonly send: string;
  /** Has to occur in what arrives from then on. */
  readonly until: string;
}

/** Two ends of one session, and the one message that each sends again and again. */
export interface PairPlan {
  readonly client: PeerPlan;
  readonly agent: PeerPlan;
  /** Sent by the client once both are there; `until` arrives at the agent. Null: not needed. */
  readonly bind: Step | null;
  /** The client may send no more than so many messages on one connection; null: any number. */
  readonly most: number | null;
  readonly toAgent: Message;
  readonly toClient: Message;
}

export interface Message {
  readonly send: string;
  /** The payload as it arrives on the other side. */
  readonly arrives: string;
}

/** How a slice sends: so many under way for each pair, or at a fixed rate over all. */
export type Load = { readonly window: number } | { readonly perSecond: number };

export type Command =
  | { readonly kind: "pairs"; readonly group: string; readonly pairs: readonly PairPlan[] }
  | { readonly kind: "idle"; readonly group: string; readonly peers: readonly PeerPlan[] }
  | { readonly kind: "renew"; readonly group: string }
  | { readonly kind: "slice"; readonly group: string; readonly load: Load; readonly ms: number }
  | { readonly kind: "close"; readonly group: string };

export interface SliceResult {
  /** Forwarded by the server, in both directions. */
  readonly messages: number;
  readonly wallUs: number;
  /** Of the generator's processor. */
  readonly cpuUs: number;
}

/** To every command in order: its result, or why there is none. */
export type Answer =
  | { readonly ok: true; readonly result: SliceResult | null }
  | { readonly ok: false; readonly error: string };
