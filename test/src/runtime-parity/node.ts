/** An agent on Node, in this process. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { provision, type RunningAgent, startAgent } from "@blindrelay/agent-sdk/node";
import { MAX_PLAINTEXT_BYTES } from "@blindrelay/protocol";
import type { Installation, Runtime } from "./board.ts";
import { PROGRAMS } from "./programs.ts";

export const nodeBoard: Runtime = {
  title: "Node",
  isThere: true,
  runtime: /^node \d+\.\d+\.\d+$/,
  maxPlaintext: MAX_PLAINTEXT_BYTES,
  maxMessage: null,
  isEspruino: false,
  tight: false,
  versions: ["1", "2", "3", "4"],
  async make() {
    const stateDir = mkdtempSync(join(tmpdir(), "blindrelay-same-"));
    let installed: Installation | null = null;
    let life: RunningAgent | null = null;
    const powerOff = async (): Promise<void> => {
      await life?.stop();
      life = null;
    };
    return {
      async install(installation) {
        installed = installation;
      },
      async provision() {
        const { credentials, version } = installed as Installation;
        await provision(stateDir, { agentToken: credentials.agentToken, packetVersion: version });
      },
      async powerOn() {
        const { credentials, version, program } = installed as Installation;
        life = await startAgent({
          ...credentials,
          packetVersion: version,
          program: PROGRAMS[program].program,
          name: "board",
          stateDir,
          log: () => {},
        });
        await life.online();
      },
      powerOff,
      async spoil() {
        for (const name of readdirSync(stateDir)) writeFileSync(join(stateDir, name), "torn");
      },
      async end() {
        await powerOff();
        rmSync(stateDir, { recursive: true, force: true });
      },
    };
  },
};
