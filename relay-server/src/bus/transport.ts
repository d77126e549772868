/**
 * What the bus needs from an engine: subjects, delivery at most once, and a report if there is no
 * subscriber. Implemented by NATS (nats.ts) and by the simulator.
 */
export interface Delivery {
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly replyTo: string | null;
  /** The message sent with this reply subject had no subscriber; there is no payload. */
  readonly nobody: boolean;
}

export interface Transport {
  /** While false, published messages are lost. */
  readonly isUp: boolean;
  /** Bytes published that the engine has not confirmed. */
  readonly backlogBytes: number;
  publish(subject: string, payload: Uint8Array, replyTo?: string): void;
  /** Lasts until the returned function is called, across all outages of the engine. */
  subscribe(subject: string, take: (delivery: Delivery) => void): () => void;
  /** Sets the callback for a reconnected engine; subscriptions are restored by then. */
  onUp(listener: () => void): void;
  close(): Promise<void>;
}
