/**
 * A board whose secret is replaced over the relay (core/rekey.ts), for the files that include this,
 * in place of start-count.ts.
 *
 * [portable]
 */
import { asciiBytes, toHex } from "@blindrelay/protocol/crypto";
import { AgentSessions } from "@blindrelay/protocol/session";
import type { AgentCore, AgentCoreOptions } from "../core/agent-core.ts";
import type { BootCountResult } from "../core/bootcount.ts";
import type { RekeyedStart } from "../core/give-rekey.ts";
import { startRekeyed } from "../core/give-rekey.ts";
import type { EspruinoStorage } from "./board.ts";
import type { BoardConfig } from "./files.ts";
import { storageFiles } from "./files.ts";
import { boardLog } from "./ports.ts";
import type { EspruinoSuite } from "./suite.ts";

let rekeyed: RekeyedStart | null = null;

/** `config`: gets the secret of this start. */
export const countStart = (
  storage: EspruinoStorage,
  suite: EspruinoSuite,
  config: BoardConfig,
): BootCountResult => {
  const parts = {
    storage: storageFiles(storage),
    suite: suite,
    log: boardLog,
    pushKey: config.push_key,
    sha256: (text: string) => toHex(suite.hash(asciiBytes(text))),
  };
  rekeyed = startRekeyed(parts, config.agent_id, config.agent_token);
  (config as { agent_token: string }).agent_token = rekeyed.secrets.token;
  return rekeyed.boot;
};

export const serveRekeys = (core: AgentCore): void => {
  const all = (core as unknown as { options: AgentCoreOptions }).options;
  (rekeyed as RekeyedStart).serve(core, (agentToken, boot) => {
    const own = { suite: all.ports.suite, agentToken: agentToken, bootCount: boot.count };
    return new AgentSessions(Object.assign({}, all, own) as never);
  });
  rekeyed = null;
};
