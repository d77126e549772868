/**
 * Whoever reads an agent's log goes away: the agent goes on, silently, and without a busy core.
 *
 * PromptPartner/bexio-mcp-server#18, HarperFast/harper#2106
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeToken } from "@blindrelay/protocol";
import { expect, onTestFinished, test } from "vitest";

const COMMAND = fileURLToPath(new URL("../../../tools/src/main.ts", import.meta.url));

test("an agent whose log nobody reads any more goes on trying to connect", async () => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-log-"));
  const program = join(folder, "pump.js");
  writeFileSync(program, "export default (agent) => { agent.handle('on', () => true); };");
  // No relay, but something that counts the attempts, each of which is followed by a line.
  let attempts = 0;
  const server = createServer().on("upgrade", (_, socket) => {
    attempts++;
    socket.destroy();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const child = spawn(process.execPath, [COMMAND, "agent", "run", program], {
    stdio: ["ignore", "ignore", "pipe"],
    env: {
      PATH: process.env.PATH ?? "",
      HOME: folder,
      BLINDRELAY_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      BLINDRELAY_AGENT_ID: "pump",
      BLINDRELAY_RELAY_TOKEN: makeToken("agent", new Uint8Array(32).fill(1)),
      BLINDRELAY_AGENT_TOKEN: makeToken("e2e", new Uint8Array(32).fill(2)),
      BLINDRELAY_STATE_DIR: join(folder, "state"),
    },
  });
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    server.close();
    rmSync(folder, { recursive: true });
  });
  await once(child.stderr, "data");
  child.stderr.destroy();
  const seen = attempts;
  await expect.poll(() => attempts, { timeout: 60_000 }).toBeGreaterThanOrEqual(seen + 3);
  expect([child.exitCode, child.signalCode]).toEqual([null, null]);
});
