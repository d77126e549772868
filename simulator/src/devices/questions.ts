/** The questions of a load for one device: the call that it names, or those of its kind. */
import { type Interview, kindNamed, type Question } from "./kinds.ts";
import { sameJson } from "./same-json.ts";

/** As specified by a scenario's load. */
interface LoadCall {
  readonly call?: string;
  readonly params?: unknown;
  readonly expect?: unknown;
  readonly idempotent?: boolean | undefined;
}

export class Questions {
  private readonly kind: string | null;
  private readonly name: string;
  private readonly starts: () => number;
  private interview: Interview | null = null;
  /** The start of the device that the interview applies to. */
  private interviewed = -1;

  /** `name`: the agent's. `starts`: how often the device has started. */
  constructor(kind: string | null, name: string, starts: () => number) {
    this.kind = kind;
    this.name = name;
    this.starts = starts;
  }

  next({ call, params, expect, idempotent }: LoadCall): Question {
    if (call === undefined && this.kind !== null) return this.nextOf(this.kind, idempotent);
    const method = call ?? "";
    const isEcho = this.kind === "echo" && method === "echo";
    const wanted = expect === undefined && isEcho ? params : expect;
    return { method, params, right: (result) => wanted === undefined || sameJson(result, wanted) };
  }

  /** A restarted device has lost its state. */
  private nextOf(kind: string, idempotent?: boolean): Question {
    const start = this.starts();
    this.interview ??= kindNamed(kind).interview(this.name);
    if (this.interviewed !== start) this.interview.restarted();
    this.interviewed = start;
    const { method, params, right } = this.interview.ask(idempotent);
    // An answer to a call across a restart may come from either start, and is evidence of neither.
    return { method, params, right: (result) => start !== this.starts() || right(result) };
  }
}
