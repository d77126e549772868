/**
 * Counts the bytes of answers that their peers have not taken, by whose they are. A peer that reads
 * a little now and then keeps an answer for as long as it likes; many of them, asked for over many
 * connections, would fill the memory.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { contained } from "../../base/contain.ts";

/** Two hundred pages of a list. */
const MAX_BYTES = 8_388_608;

interface Answer {
  readonly holder: string;
  readonly bytes: number;
}

export class Untaken {
  readonly #max: number;
  readonly #bytes = new Map<string, number>();
  /** A response that waits behind others on its connection is not told of the connection's end. */
  readonly #answers = new WeakMap<Socket, Map<ServerResponse, Answer>>();

  constructor(max = MAX_BYTES) {
    this.#max = max;
  }

  /** Whether another answer would be one too many. */
  isOver(holder: string): boolean {
    return (this.#bytes.get(holder) ?? 0) > this.#max;
  }

  /** Call it before the answer is sent. */
  add(holder: string, bytes: number, socket: Socket, response: ServerResponse): void {
    if (socket.destroyed) return;
    const answers = this.#answers.get(socket) ?? this.#watch(socket);
    // Asked again where a hook has failed after this.
    if (answers.has(response)) return;
    answers.set(response, { holder, bytes });
    this.#count(holder, bytes);
    const taken = contained("request", "an answer is not counted", () => {
      if (answers.delete(response)) this.#count(holder, -bytes);
    });
    response.once("finish", taken);
  }

  #watch(socket: Socket): Map<ServerResponse, Answer> {
    const answers = new Map<ServerResponse, Answer>();
    this.#answers.set(socket, answers);
    const end = contained("connection", "its answers are not counted", () => {
      for (const { holder, bytes } of answers.values()) this.#count(holder, -bytes);
      answers.clear();
    });
    socket.once("close", end);
    return answers;
  }

  #count(holder: string, bytes: number): void {
    const sum = (this.#bytes.get(holder) ?? 0) + bytes;
    if (sum === 0) this.#bytes.delete(holder);
    else this.#bytes.set(holder, sum);
  }
}
