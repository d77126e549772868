/**
 * Sends and receives one node's messages on the cluster's subjects. An invalid message from any
 * sender is dropped and counted; an error in one handler ends nothing else.
 */
import type { Frame } from "../core/link.ts";
import { Malformed } from "./bodies.ts";
import { encodeBusMessage } from "./head.ts";
import type { Delivery, Transport } from "./transport.ts";

/** What may wait for the engine before messages are refused: some hundred of the longest. */
const MAX_BACKLOG_BYTES = 16_777_216;

export interface SubjectParts {
  readonly transport: Transport;
  /** Identifies this process, and no other before or after it; `[A-Za-z0-9_-]`. */
  readonly node: string;
  readonly prefix: string;
  readonly log: { error(fields: object, message: string): void };
  /** Calls `fn` once after `ms`, unless the returned function is called first. */
  readonly after: (ms: number, fn: () => void) => () => void;
}

/** For `/metrics`; messages since the start. */
export interface BusTraffic {
  readonly isUp: boolean;
  readonly backlogBytes: number;
  readonly sent: number;
  readonly received: number;
  readonly malformed: number;
}

type Words = readonly (string | number)[];

export class Subjects {
  readonly #parts: SubjectParts;
  #sent = 0;
  #received = 0;
  /** Of whatever sender. */
  #malformed = 0;

  constructor(parts: SubjectParts) {
    this.#parts = parts;
  }

  get node(): string {
    return this.#parts.node;
  }

  /** While false, what is sent is lost. */
  get isUp(): boolean {
    return this.#parts.transport.isUp;
  }

  traffic(): BusTraffic {
    const { isUp, backlogBytes } = this.#parts.transport;
    const [sent, received, malformed] = [this.#sent, this.#received, this.#malformed];
    return { isUp, backlogBytes, sent, received, malformed };
  }

  /** Whether the engine is connected and keeps up. */
  hasRoom(): boolean {
    return this.isUp && this.#parts.transport.backlogBytes <= MAX_BACKLOG_BYTES;
  }

  /** `subject`: without the prefix. Ends when the returned function is called. */
  listen(subject: string, take: (delivery: Delivery) => void): () => void {
    const { transport, prefix, log } = this.#parts;
    return transport.subscribe(`${prefix}.${subject}`, (delivery) => {
      this.#received += 1;
      try {
        take(delivery);
      } catch (error) {
        if (error instanceof Malformed) this.#malformed += 1;
        else {
          const fields = { err: error, subject: delivery.subject };
          log.error(fields, "could not handle a message from the bus");
        }
      }
    });
  }

  /** The last word of a subject of this node: what an answer refers to. */
  tokenOf({ subject }: Delivery): string {
    return subject.slice(`${this.#parts.prefix}.n.${this.node}.`.length);
  }

  /** To all subscribers. `subject`: without the prefix. */
  publish(subject: string, words: Words, body: Frame = ""): void {
    if (this.isUp) this.#send(`${this.#parts.prefix}.${subject}`, words, body);
  }

  /** Only while `isUp`. The answer, or the report that nobody listens, arrives with `token`. */
  request(subject: string, words: Words, token: string, body: Frame = ""): void {
    const { prefix, node } = this.#parts;
    this.#send(`${prefix}.${subject}`, words, body, `${prefix}.n.${node}.${token}`);
  }

  /** `replyTo`: from the delivery of a request. */
  reply(replyTo: string | null, words: Words, body: Frame): void {
    if (replyTo !== null && this.isUp) this.#send(replyTo, words, body);
  }

  #send(subject: string, words: Words, body: Frame, replyTo?: string): void {
    this.#sent += 1;
    this.#parts.transport.publish(subject, encodeBusMessage(words, body), replyTo);
  }

  /** To one node. */
  tell(node: string, words: Words, body: Frame = ""): void {
    this.publish(`n.${node}.0`, words, body);
  }

  tellAll(kind: string, body: object): void {
    this.publish("all", [kind, this.node], JSON.stringify(body));
  }

  /** An exception outside the handler of a message must not end the process. */
  guard(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#parts.log.error({ err: error }, "an internal step of the cluster failed");
    }
  }

  /** Calls `call` once after `ms`, unless the returned function is called first. */
  after(ms: number, call: () => void): () => void {
    return this.#parts.after(ms, () => this.guard(call));
  }
}
