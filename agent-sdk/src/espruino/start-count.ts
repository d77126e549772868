/**
 * How a start gets its boot count. A file whose board takes a new secret over the relay contains
 * rekey.ts instead, under the same names.
 *
 * [portable]
 */
import type { AgentCore } from "../core/agent-core.ts";
import { type BootCountResult, raiseBootCount } from "../core/bootcount.ts";
import type { EspruinoStorage } from "./board.ts";
import type { BoardConfig } from "./files.ts";
import { storageFiles } from "./files.ts";
import type { EspruinoSuite } from "./suite.ts";

export const countStart = (
  storage: EspruinoStorage,
  suite: EspruinoSuite,
  config: BoardConfig,
): BootCountResult => raiseBootCount(storageFiles(storage), suite, config.agent_token);

export const serveRekeys = (_core: AgentCore): void => {};
