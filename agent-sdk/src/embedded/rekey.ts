/**
 * A secret that is replaced over the relay, on small devices: `startAgent({ rekey: rekey(), … })`.
 * A module of its own, so that a project without it does not contain it.
 */
import { tokenProblem } from "@blindrelay/protocol";
import { asciiBytes, toHex } from "@blindrelay/protocol/crypto";
import { nobleSha256 } from "@blindrelay/protocol/suites/noble-chacha";
import { startRekeyed } from "../core/give-rekey.ts";
import type { Rekey } from "../core/start-options.ts";

const sha256 = (text: string): string => toHex(nobleSha256(asciiBytes(text)));

/**
 * `pushKey`: `push_`, which then has to prove every new secret; without it the agentToken is
 * enough. Throws if it is none.
 */
export const rekey = (pushKey?: string): Rekey => {
  const problem = pushKey === undefined ? null : tokenProblem(pushKey, "push");
  if (problem !== null) throw new Error(`pushKey: ${problem}`);
  return (ports, agentId, configured) =>
    startRekeyed({ ...ports, pushKey, sha256 }, agentId, configured);
};
