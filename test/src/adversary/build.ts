/**
 * The code under attack, loaded from a folder with `protocol`, `agent-sdk` and `client-sdk`: this
 * repository, or a copy in which a rule was left out (mutants.ts).
 */
import { fileURLToPath, pathToFileURL } from "node:url";

export interface Build {
  readonly agent: typeof import("@blindrelay/agent-sdk");
  readonly client: typeof import("@blindrelay/client-sdk/testing");
  readonly conformance: typeof import("@blindrelay/protocol/testing/forward");
  readonly crypto: typeof import("@blindrelay/protocol/crypto");
  readonly push: typeof import("@blindrelay/agent-sdk/push");
  readonly session: typeof import("@blindrelay/protocol/session");
  readonly suites: typeof import("@blindrelay/protocol/suites/node");
}

/** Absolute path of this repository. */
export const REPOSITORY = fileURLToPath(new URL("../../..", import.meta.url));

/** `root`: absolute path of the folder. */
export const loadBuild = async (root: string): Promise<Build> => {
  const load = (file: string) =>
    import(/* @vite-ignore */ new URL(file, pathToFileURL(`${root}/`)).href);
  return {
    agent: await load("agent-sdk/src/index.ts"),
    client: await load("client-sdk/src/core/client-core.ts"),
    conformance: await load("protocol/src/testing/forward.ts"),
    crypto: await load("protocol/src/crypto/index.ts"),
    push: await load("agent-sdk/src/core/push.ts"),
    session: await load("protocol/src/session/index.ts"),
    suites: await load("protocol/src/suites/node.ts"),
  };
};
