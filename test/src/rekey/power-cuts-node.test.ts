/** On Node, whose state folder is cut at each byte and each call of the file system. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { provision, startAgent, systemTimer } from "@blindrelay/agent-sdk/node";
import { afterAll, describe, vi } from "vitest";
import { type Medium, powerCutTests } from "./power-cuts.ts";
import { AGENT_ID, RELAY_TOKEN, Stage } from "./stage.ts";

const power = vi.hoisted(() => ({
  /** Steps so far, and the last one with power. */
  steps: 0,
  until: Number.POSITIVE_INFINITY,
}));

vi.mock("node:fs", async (original) => {
  const fs = await original<typeof import("node:fs")>();
  const step = (): void => {
    if (power.steps >= power.until) throw new Error("no power");
    power.steps++;
  };
  return {
    ...fs,
    writeSync(handle: number, bytes: Uint8Array, at = 0) {
      step();
      return fs.writeSync(handle, bytes, at, 1);
    },
    fsyncSync(handle: number) {
      step();
      fs.fsyncSync(handle);
    },
    renameSync(from: string, to: string) {
      step();
      fs.renameSync(from, to);
      step();
    },
  };
});

const root = mkdtempSync(join(tmpdir(), "blindrelay-cuts-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

class FolderMedium implements Medium {
  readonly folder = mkdtempSync(join(root, "state-"));
  cutAt = Number.POSITIVE_INFINITY;

  get steps(): number {
    return power.steps;
  }

  cutAfter(step: number): void {
    this.cutAt = step;
  }

  copy(): Medium {
    const other = new FolderMedium();
    cpSync(this.folder, other.folder, { recursive: true });
    return other;
  }

  texts(): string[] {
    return readdirSync(this.folder)
      .filter((name) => !name.startsWith("lock."))
      .map((name) => readFileSync(join(this.folder, name), "latin1"));
  }
}

describe("Node", () => {
  powerCutTests({
    title: "Node",
    isThere: true,
    versions: ["1", "3"],
    load: async () => undefined,
    async provision(agentToken, packetVersion) {
      const medium = new FolderMedium();
      await provision(medium.folder, { agentToken, packetVersion });
      return medium;
    },
    async live(medium, agentToken, packetVersion, act) {
      const { folder, cutAt } = medium as FolderMedium;
      const stage = new Stage(systemTimer(), turn);
      power.until = power.steps + cutAt;
      try {
        const agent = await startAgent({
          ...{ url: "ws://relay.test/wss", agentId: AGENT_ID, relayToken: RELAY_TOKEN },
          ...{ agentToken, packetVersion, stateDir: folder, links: stage.network },
          program: () => undefined,
          log: () => undefined,
        });
        try {
          await stage.online();
          await act(stage);
        } finally {
          await agent.stop();
        }
      } finally {
        power.until = Number.POSITIVE_INFINITY;
      }
    },
  });
});
