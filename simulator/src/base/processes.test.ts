import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { stopChild, watch, whenEnded } from "./processes.ts";

const MODULE = JSON.stringify(fileURLToPath(new URL("./processes.ts", import.meta.url)));

function node(code: string) {
  return watch(
    spawn(process.execPath, ["--input-type=module", "-e", code], {
      stdio: ["ignore", "pipe", "inherit"],
    }),
  );
}

test("a child that obeys a request to end is not killed", async () => {
  const child = node(
    "process.on('SIGTERM', () => process.exit(7)); console.log(); setInterval(() => {}, 1e6)",
  );
  await once(child.stdout, "data");
  await stopChild(child, () => child.kill("SIGTERM"), 10_000);
  expect(await whenEnded(child)).toBe("exit code 7");
});

test("a child that does not obey is killed", async () => {
  const child = node("process.on('SIGTERM', () => {}); console.log(); setInterval(() => {}, 1e6)");
  await once(child.stdout, "data");
  await stopChild(child, () => child.kill("SIGTERM"), 50);
  expect(await whenEnded(child)).toBe("SIGKILL");
});

test("stopping a child that has ended does not wait", async () => {
  const child = node("");
  await whenEnded(child);
  await stopChild(child, () => {}, 10_000);
});

test("a program that cannot be started is reported as ended", async () => {
  const child = watch(spawn("/no/such/program", { stdio: "ignore" }));
  expect(await whenEnded(child)).toContain("ENOENT");
});

test("children do not outlive a parent that crashes", async () => {
  const parent = spawn(
    process.execPath,
    [
      "--input-type=module",
      "-e",
      `import { watch } from ${MODULE};
       import { spawn } from "node:child_process";
       const child = watch(spawn(process.execPath, ["-e", "setInterval(() => {}, 1e6)"]));
       console.log(child.pid);
       setTimeout(() => { throw new Error("on purpose"); }, 10);`,
    ],
    { stdio: ["ignore", "pipe", "ignore"] },
  );
  const ended = once(parent, "exit");
  const [line] = await once(createInterface({ input: parent.stdout }), "line");
  await ended;
  await untilGone(Number(line));
});

/** Waits until there is no process with this id; limited by the test's own timeout. */
async function untilGone(pid: number): Promise<void> {
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
