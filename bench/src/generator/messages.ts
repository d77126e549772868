/**
 * Messages between the benchmark and its generator over IPC. Peers are described by their bytes
 * (latin1 strings), so the generator knows no protocol and costs almost nothing: all messages in
 * one direction are the same bytes.
 */

export interface PeerPlan {
  readonly port: number;
  /** For a WebSocket; null: the bytes go over TCP as they are. */
  readonly ws: WebSocketPlan | null;
  /** What the server may send at any time, and the answer that it requires. */
  readonly aside?: { readonly hear: string; readonly answer: string };
  /** Sent in turn after connecting, each when the previous one's `until` has arrived. */
  readonly hello: readonly Step[];
}

export interface WebSocketPlan {
  readonly path: string;
  readonly protocol?: string;
  readonly binary: boolean;
}

export interface Step {
  readonly send: string;
  /** Has to occur in the data that arrives after it. */
  readonly until: string;
}

/** Two ends of one session, and the one message that each sends repeatedly. */
export interface PairPlan {
  readonly client: PeerPlan;
  readonly agent: PeerPlan;
  /** Sent by the client once both are connected, if needed; `until` arrives at the agent. */
  readonly bind?: Step;
  /** The most messages that the client may send on one connection after `bind`, if limited. */
  readonly most?: number;
  readonly toAgent: Message;
  readonly toClient: Message;
}

export interface Message {
  readonly send: string;
  /** The payload as it arrives at the other end. */
  readonly arrives: string;
}

/** How a slice sends: with so many in flight for each pair, or at a fixed rate over all. */
export type Load = { readonly window: number } | { readonly perSecond: number };

export interface SliceCommand {
  readonly kind: "slice";
  readonly group: string;
  readonly load: Load;
  readonly ms: number;
}

export type Command =
  | SliceCommand
  | { readonly kind: "pairs"; readonly group: string; readonly pairs: readonly PairPlan[] }
  /** Opens more connections, which send nothing after their hello. */
  | { readonly kind: "idle"; readonly group: string; readonly peers: readonly PeerPlan[] }
  /** Replaces the connections of clients that will soon reach their message limit. */
  | { readonly kind: "renew"; readonly group: string }
  | { readonly kind: "close"; readonly group: string };

export interface SliceResult {
  /** Messages that the server forwarded, in both directions. */
  readonly messages: number;
  readonly wallUs: number;
  /** Of the generator's processor. */
  readonly cpuUs: number;
}

/** The answer to each command, in order: its result, or the error. */
export type Answer =
  | { readonly ok: true; readonly result: SliceResult | null }
  | { readonly ok: false; readonly error: string };
