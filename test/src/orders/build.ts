/**
 * The code that is searched: the sessions of both sides, and the dispatcher that obeys `expires`,
 * from this repository or from a copy in which a rule was left out.
 */
import { pathToFileURL } from "node:url";

interface Dispatcher {
  add(method: string, handler: (params: unknown) => unknown): void;
  receive(
    plaintext: Uint8Array,
    sid: string,
    ageMs: number,
    answer: (plaintext: Uint8Array) => void,
  ): void;
}

type Session = typeof import("@blindrelay/protocol/session");

export interface Build {
  readonly AgentSessions: Session["AgentSessions"];
  readonly ClientSession: Session["ClientSession"];
  readonly DEFAULT_CLIENT_TIMINGS: Session["DEFAULT_CLIENT_TIMINGS"];
  readonly Dispatcher: new (maxPlaintext: number, failed: () => void) => Dispatcher;
}

/** `root`: absolute path of a folder with `protocol` and `agent-sdk`. */
export const loadBuild = async (root: string): Promise<Build> => {
  const load = (file: string) =>
    import(/* @vite-ignore */ new URL(file, pathToFileURL(`${root}/`)).href);
  return {
    ...(await load("protocol/src/session/index.ts")),
    ...(await load("agent-sdk/src/core/dispatch.ts")),
  };
};
