/**
 * The journal of a call to many agents: what a killed command must know when it goes on. One JSON
 * line each: a head; `{agent_id, state: "sent", at}`, on the medium before the call goes out; then
 * the agent's outcome. A last line that was cut off counts as not written. So a call that may have
 * run is never sent twice: sent without an outcome is `unknown`.
 */
import { constants, rmSync, statSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { type FleetOutcome, type OutcomeKind, outcomeOf } from "@blindrelay/client-sdk";
import { Failure } from "@blindrelay/protocol/command-line";
import { decodeJson } from "@blindrelay/protocol/crypto";
import { holdLock } from "@blindrelay/protocol/file-lock";
import { giveToOwner } from "@blindrelay/protocol/file-owner";
import { lineOf } from "./outcome-line.ts";

const VERSION = 1;
/** How its head begins. */
const BEGIN = `{"journal":${VERSION},`;
const OUTCOMES: readonly string[] = ["ok", "error", "offline", "unknown", "skipped"];
const UNANSWERED = "the command ended before it was answered";

interface JournalHead {
  readonly journal: typeof VERSION;
  readonly url: string;
  readonly account: string;
  readonly method: string;
  readonly params_sha256: string;
  readonly where: string;
  /** Those that matched when it was made. */
  readonly agents: readonly string[];
}

const isText = (value: unknown): value is string => typeof value === "string";

const readHead = (value: unknown): JournalHead | null => {
  const head = (value ?? {}) as Partial<JournalHead>;
  const { journal, url, account, method, params_sha256, where, agents } = head;
  const texts = [url, account, method, params_sha256, where];
  return journal === VERSION && texts.every(isText) && Array.isArray(agents) && agents.every(isText)
    ? (head as JournalHead)
    : null;
};

/** The latest of each agent: an outcome, or "sent". */
type State = FleetOutcome | { readonly sentAt: string };

const readEntry = (value: unknown): readonly [id: string, state: State] | null => {
  const { agent_id, state, outcome, result, error, at } = (value ?? {}) as Record<string, unknown>;
  if (!isText(agent_id) || !isText(at)) return null;
  if (state === "sent") return [agent_id, { sentAt: at }];
  if (!isText(outcome) || !OUTCOMES.includes(outcome)) return null;
  const told = isText(error) ? error : null;
  const kind = outcome as OutcomeKind;
  return [agent_id, { agentId: agent_id, outcome: kind, result: result ?? null, error: told, at }];
};

const refuse = (path: string, why: string): never => {
  throw new Failure("usage", `the journal ${path} ${why}`);
};

interface Content {
  readonly head: JournalHead | null;
  readonly states: Map<string, State>;
  /** Bytes up to the end of the last whole line. */
  readonly length: number;
}

const readContent = (path: string, bytes: Buffer): Content => {
  const length = bytes.lastIndexOf(10) + 1;
  const lines = bytes.toString("utf8", 0, length).split("\n").slice(0, -1);
  const states = new Map<string, State>();
  const [first] = lines;
  if (first === undefined) {
    // A file that is something else must not be written over.
    const begun = bytes.toString("utf8", 0, BEGIN.length);
    if (!BEGIN.startsWith(begun)) refuse(path, "is not one of this version (line 1)");
    return { head: null, states, length: 0 };
  }
  const head = readHead(decodeJson(first)) ?? refuse(path, "is not one of this version (line 1)");
  const ids = new Set(head.agents);
  for (const [index, line] of lines.entries()) {
    if (index === 0) continue;
    const entry = readEntry(decodeJson(line));
    if (entry === null || !ids.has(entry[0])) return refuse(path, `is damaged (line ${index + 1})`);
    // What is sent again is not settled any more.
    states.set(entry[0], entry[1]);
  }
  return { head, states, length };
};

/** A journal that this process has, and no other. */
export class Journal {
  readonly path: string;
  readonly head: JournalHead;
  private readonly file: FileHandle;
  private readonly unlock: () => void;
  private readonly states: Map<string, State>;
  private waiting: { readonly text: string; readonly done: () => void }[] = [];
  private writing: Promise<void> | null = null;
  private failure: unknown = null;

  private constructor(
    path: string,
    head: JournalHead,
    file: FileHandle,
    unlock: () => void,
    states: Map<string, State>,
  ) {
    this.path = path;
    this.head = head;
    this.file = file;
    this.unlock = unlock;
    this.states = states;
  }

  /**
   * Opens or makes it. `made`: the head of a new one, with the agents that match now; not called
   * for one that is there, which is compared with `asked`. Throws a Failure (usage) if that is of
   * another call, damaged, or in use; whatever `made` throws.
   */
  static async open(
    path: string,
    asked: Omit<JournalHead, "agents" | "journal">,
    made: () => Promise<readonly string[]>,
  ): Promise<Journal> {
    let unlock: (() => void) | null = null;
    let file: FileHandle | null = null;
    try {
      unlock = holdLock(path);
      if (unlock === null) return refuse(path, "is used by another process");
      file = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_APPEND, 0o600);
      const content = readContent(path, await file.readFile());
      for (const key of ["url", "account", "method", "params_sha256", "where"] as const) {
        const was = content.head?.[key];
        if (was !== undefined && was !== asked[key])
          refuse(path, `is of another call: its ${key} is ${was || "empty"}`);
      }
      const head = content.head ?? { journal: VERSION, ...asked, agents: await made() };
      await file.chmod(0o600);
      // A line that was cut off; what follows must begin a line of its own.
      await file.truncate(content.length);
      const journal = new Journal(path, head, file, unlock, content.states);
      if (content.head === null) await journal.begin();
      await journal.closeGap();
      return journal;
    } catch (error) {
      await file?.close();
      // Nothing matched: an empty file helps nobody.
      if (file !== null && statSync(path).size === 0) rmSync(path);
      unlock?.();
      const { code } = error as NodeJS.ErrnoException;
      if (code === undefined || error instanceof Failure) throw error;
      const what = `cannot use the journal ${path}: ${(error as Error).message}`;
      throw new Failure("usage", `${what}; name a file that can be written: --resume FILE`, error);
    }
  }

  private async begin(): Promise<void> {
    giveToOwner(this.path, dirname(this.path));
    await this.append(this.head);
    const folder = await open(dirname(this.path), "r");
    await folder.sync().catch(() => undefined);
    await folder.close();
  }

  /** What was sent and has no outcome is `unknown` from now on. */
  private async closeGap(): Promise<void> {
    const sent = [...this.states].filter(([, state]) => "sentAt" in state);
    await Promise.all(
      sent.map(([agentId]) => this.settled(outcomeOf(agentId, "unknown", UNANSWERED))),
    );
  }

  /** Outcomes so far, in the order of the agents. */
  outcomes(): FleetOutcome[] {
    return this.head.agents.flatMap((id) => (this.states.get(id) as FleetOutcome) ?? []);
  }

  /** Resolves when it is on the medium. */
  sent(agentId: string): Promise<void> {
    return this.append({ agent_id: agentId, state: "sent", at: new Date().toISOString() });
  }

  /** Resolves when it is on the medium. */
  settled(outcome: FleetOutcome): Promise<void> {
    this.states.set(outcome.agentId, outcome);
    return this.append(lineOf(outcome));
  }

  async close(): Promise<void> {
    while (this.writing !== null) await this.writing;
    await this.file.close();
    this.unlock();
  }

  /** What many agents wait for at once is written and flushed at once. */
  private append(line: object): Promise<void> {
    return new Promise((done, failed) => {
      const text = `${JSON.stringify(line)}\n`;
      this.waiting.push({
        text,
        done: () => (this.failure === null ? done() : failed(this.failure)),
      });
      this.writing ??= this.write();
    });
  }

  private async write(): Promise<void> {
    // Whatever is asked for in the same turn goes along.
    await Promise.resolve();
    while (this.waiting.length > 0) {
      const batch = this.waiting;
      this.waiting = [];
      try {
        // After a failed write nothing may follow: the file's end is not known.
        if (this.failure === null) {
          await this.file.appendFile(batch.map(({ text }) => text).join(""));
          await this.file.datasync();
        }
      } catch (error) {
        const why = `cannot write the journal ${basename(this.path)}: ${(error as Error).message}`;
        this.failure = new Failure("fault", why, error);
      }
      for (const { done } of batch) done();
    }
    this.writing = null;
  }
}
