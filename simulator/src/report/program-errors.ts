/** What programs throw: in handlers, whose callers hear of it, and where nobody catches it. */
import { STREAM_CREDIT, STREAM_DATA, STREAM_END } from "@blindrelay/protocol/streams";
import { type Allowed, PROGRAM } from "../scenario/schema.ts";
import type { FailureCount, OracleResult } from "./report.ts";

const HANDLER = "HANDLER";
/** Of each code: what handlers throw must not hide what nobody catches. */
const MAX_KINDS = 100;
const REJECTED = "the program left a promise rejected: ";

/** As an agent's core logs what it catches for a program, and no caller hears of. */
const CAUGHT: readonly string[] = [
  "a timer of the device program failed",
  "a listener to the end of a stream failed",
  ...[STREAM_DATA, STREAM_CREDIT, STREAM_END].map((method) => `the handler of "${method}" failed`),
];

/** What a line of the core's log says that a program threw; null: nothing. */
export function thrownIn(message: string): typeof PROGRAM | typeof HANDLER | null {
  if (CAUGHT.includes(message)) return PROGRAM;
  return /^the handler of ".*" failed$/.test(message) ? HANDLER : null;
}

export class ProgramErrors {
  private readonly kinds = new Map<string, FailureCount>();

  /** Errors of different devices differ only by numbers. */
  add({ code = PROGRAM, example, count = 1 }: Partial<FailureCount> & { example: string }): void {
    const key = (example.split("\n", 1)[0] as string).replace(/[0-9]+/g, "N");
    const known = this.kinds.get(key);
    const isAlike = (one: FailureCount): boolean => one.code === code;
    if (known !== undefined) known.count += count;
    else if ([...this.kinds.values()].filter(isAlike).length < MAX_KINDS) {
      this.kinds.set(key, { code, count, example: example.slice(0, 500) });
    }
  }

  /** Node tells of these some time later, by the real clock. */
  rejected(text: string): void {
    this.add({ example: `${REJECTED}${text}` });
  }

  /** In the same order whenever the same was thrown. */
  all(): FailureCount[] {
    const isLate = ({ example }: FailureCount): number => Number(example.startsWith(REJECTED));
    return [...this.kinds.values()].sort((a, b) => isLate(a) - isLate(b));
  }

  /** On a device, what nobody catches may end its program, or reset it. */
  judge(allow: readonly Allowed[] = []): OracleResult {
    const isAllowed = allow.some(({ code }) => code === PROGRAM);
    const first = isAllowed ? undefined : this.all().find(({ code }) => code === PROGRAM);
    const but = isAllowed ? ", but for what the scenario allows" : "";
    const detail = first?.example ?? `what device programs throw is caught${but}`;
    return { name: "uncaught", ok: first === undefined, detail };
  }
}
