/**
 * What an agent says, with places in its program as FILE:LINE:COLUMN, if the program was flashed or
 * pushed from here.
 */
import { inSource, type SourceMap } from "@blindrelay/agent-sdk/board";
import { type Agent, CallError } from "@blindrelay/client-sdk";
import { buildOf, shownPath } from "../config/kept-builds.ts";

const METHOD = "system.push";
const CALL_MS = 20_000;

interface Status {
  readonly id: string;
  readonly trial: string | null;
  readonly failed: { readonly id: string } | null;
}

export class Sources {
  private readonly folder: string | null;
  private running: SourceMap | null = null;
  private before: SourceMap | null = null;

  /** `folder`: of kept builds. */
  constructor(folder: string | null) {
    this.folder = folder;
  }

  /** Asks the agent what it runs since it restarted for that reason. Never rejects. */
  async ask(agent: Agent, reason: string): Promise<void> {
    // Rather no source than that of another program.
    this.running = null;
    this.before = null;
    const status = await this.statusOf(agent);
    if (status === null) return;
    const mapOf = (id: string): SourceMap | null => buildOf(this.folder, agent.id, id);
    this.running = mapOf(status.trial ?? status.id);
    // A push ends one program and starts another. A failed one may also have ended in another way.
    const { failed } = status;
    if (failed === null) this.before = reason === "push" ? null : this.running;
    else if (reason === "push" && status.trial === null) this.before = mapOf(failed.id);
  }

  /** Of the program that runs. */
  show(text: string): string {
    return inSource(text, this.running, shownPath);
  }

  /** Of the one that ran before the restart. */
  showBefore(text: string): string {
    return inSource(text, this.before, shownPath);
  }

  /** Null if it cannot tell. */
  private async statusOf(agent: Agent): Promise<Status | null> {
    if (this.folder === null) return null;
    try {
      const options = { timeoutMs: CALL_MS, idempotent: true };
      const { id, trial, failed } = Object(await agent.call(METHOD, undefined, options));
      const { id: failedId } = Object(failed);
      if (typeof id !== "string") return null;
      return {
        id,
        trial: typeof trial === "string" ? trial : null,
        failed: typeof failedId === "string" ? { id: failedId } : null,
      };
    } catch (error) {
      if (error instanceof CallError) return null;
      throw error;
    }
  }
}
