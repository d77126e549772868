/** The search over every test's output finds leaks: in this process and in spawned ones. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeToken } from "@blindrelay/protocol";
import { describe, expect, test } from "vitest";
import { makeMasterKey } from "../../../../relay-server/src/control/master-key.ts";
import { hashPassword } from "../../../../relay-server/src/control/passwords.ts";
import { drawRecoveryCodes, drawTotpSecret } from "../../../../relay-server/src/control/totp.ts";
import { createLog } from "../../../../relay-server/src/log.ts";
import { printStatus } from "../../../../tools/src/base/output.ts";
import { showSecret } from "../../../../tools/src/base/show-secret.ts";
import { takeLeaks } from "./judge.ts";
import { leaksIn } from "./leaks.ts";
import { FULL_COST_DUMMY_HASH, hashAtFullCost } from "./witnessed-passwords.ts";

const KINDS = ["account", "agent", "session", "login", "e2e"] as const;
const folder = process.env.BLINDRELAY_TEST_RECORDS ?? "";
const REPOSITORY = fileURLToPath(new URL("../../../..", import.meta.url));
const token = () => makeToken("agent", crypto.getRandomValues(new Uint8Array(32)));

describe("leaksIn", () => {
  test.each(KINDS)("recognises the secret of an %s by its format and checksum", (kind) => {
    const secret = makeToken(kind, new Uint8Array(32).fill(7));
    const [leak] = leaksIn(`{"authorization":"Bearer ${secret}"}`, new Set());
    expect(leak).toContain('{"authorization":"Bearer <the secret>"}');
    expect(leak).not.toContain(secret);
    const mistyped = `${secret.slice(0, -1)}${secret.endsWith("0") ? "1" : "0"}`;
    expect(leaksIn(mistyped, new Set())).toEqual([]);
  });

  test("recognises secrets without a format by their registration", () => {
    const secrets = new Set(["correct horse", "short"]);
    expect(leaksIn("user=ada password=correct horse", secrets)).toHaveLength(1);
    expect(leaksIn("a short text", secrets)).toEqual([]);
  });
});

describe("over a whole test file", () => {
  test("a silent relay's log is recorded down to trace", () => {
    const secret = token();
    createLog("silent").trace({ header: secret }, "somebody came");
    expect(takeLeaks(folder)).toEqual([expect.stringContaining("<the secret>")]);
    expect(takeLeaks(folder)).toEqual([]);
  });

  test("and standard error, by a stream or by its number, and the console", () => {
    process.stderr.write(`${token()}\n`);
    writeSync(2, `${token()}\n`);
    console.error("found", token());
    expect(takeLeaks(folder)).toHaveLength(3);
  });

  test("but not what is shown to a person on purpose, in the one place that does", () => {
    const secret = token();
    showSecret(secret);
    expect(takeLeaks(folder)).toEqual([]);
    printStatus(secret);
    expect(takeLeaks(folder)).toHaveLength(1);
    const grep = ["grep", "--untracked", "-l", "/show-secret.ts", "--", "tools/src"];
    const importers = execFileSync("git", grep, { cwd: REPOSITORY, encoding: "utf8" });
    expect(importers).toBe("tools/src/commands/enrol.ts\n");
  });

  test("for passwords, their hashes, one-time secrets, recovery codes and master keys", async () => {
    const hash = await hashPassword("a password of this test");
    const [code] = drawRecoveryCodes();
    const key = Buffer.from(makeMasterKey("unused", "5c".repeat(32)));
    const said = ["a password of this test", hash, drawTotpSecret(), code, key.toString("hex")];
    for (const secret of said) createLog("silent").info(`found ${secret}`);
    expect(takeLeaks(folder)).toHaveLength(said.length);
  });

  test("what the log hides by name is not recorded", () => {
    const request = { headers: { authorization: token() } };
    createLog("silent").info({ password: "correct horse", body: { api_token: token() }, request });
    expect(takeLeaks(folder)).toEqual([]);
  });

  test("in a process that a test spawned, killed or not", async () => {
    const log = new URL("../../../../relay-server/src/log.ts", import.meta.url).href;
    const passwords = new URL("../../../../relay-server/src/control/passwords.ts", import.meta.url)
      .href;
    const program = `
      const { createLog } = await import(${JSON.stringify(log)});
      const { hashPassword } = await import(${JSON.stringify(passwords)});
      await hashPassword("a password of another process");
      createLog("silent").debug("in its log: a password of another process");
      process.stderr.write(${JSON.stringify(token())});
      process.stdout.write("as an answer: " + ${JSON.stringify(token())});
      process.kill(process.pid, "SIGKILL");`;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
      stdio: ["ignore", "ignore", "ignore"],
    });
    expect(await once(child, "exit")).toEqual([null, "SIGKILL"]);
    const leaks = takeLeaks(folder);
    expect(leaks).toHaveLength(2);
    expect(leaks.join()).toContain("in its log: <the secret>");
    // they were planted
    for (const name of readdirSync(folder)) rmSync(join(folder, name));
  });
});

test("outside tests, a password is hashed at the cost that OWASP recommends", async () => {
  const cost = /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/;
  expect(await hashAtFullCost("any password")).toMatch(cost);
  expect(FULL_COST_DUMMY_HASH).toMatch(cost);
  expect(await hashPassword("any password")).not.toMatch(cost);
});
