/** Counts the messages that pass a transport, for `/metrics`. */
import type { Transport } from "./transport.ts";

/** `sent`, `received`: messages since the start. */
export interface BusTraffic {
  readonly isUp: boolean;
  readonly backlogBytes: number;
  readonly sent: number;
  readonly received: number;
}

export const counted = (inner: Transport): { transport: Transport; traffic: () => BusTraffic } => {
  let sent = 0;
  let received = 0;
  const transport: Transport = {
    get isUp() {
      return inner.isUp;
    },
    get backlogBytes() {
      return inner.backlogBytes;
    },
    publish(subject, payload, replyTo) {
      sent += 1;
      inner.publish(subject, payload, replyTo);
    },
    subscribe: (subject, take) =>
      inner.subscribe(subject, (delivery) => {
        received += 1;
        take(delivery);
      }),
    onUp: (listener) => inner.onUp(listener),
    close: () => inner.close(),
  };
  const traffic = () => ({
    isUp: inner.isUp,
    backlogBytes: inner.backlogBytes,
    sent,
    received,
  });
  return { transport, traffic };
};
