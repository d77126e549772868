/** The device program of the chip: what the proof calls. */
import type { Program } from "../../src/core/agent.ts";

const FIGURES = 6;
const kept: Uint8Array[] = [];

export const program: Program = (agent) => {
  agent.handle("echo", (params) => params);
  agent.handle("wrap", (params) => ({ params }));
  agent.handle("figures", () => Array.from({ length: FIGURES }, (_, index) => chip.figure(index)));
  /** A fault on purpose: bytes that nobody ever frees. */
  agent.handle("leak", (params) => {
    kept.push(new Uint8Array((params as { bytes: number }).bytes));
    return kept.length;
  });
};
