/**
 * A migration on a disk that fills while it runs, on a file system of its own (tmpfs): it succeeds
 * or is refused with the cause, and the store is whole, with room or without.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const CAN_MOUNT = spawnSync("unshare", ["-m", "true"]).status === 0;
const SERVER = join(fileURLToPath(import.meta.resolve("@blindrelay/relay-server")), "../..");
const MAIN = join(SERVER, "src/main.ts");

/**
 * In $DATA: the store of an earlier version and $LEFT KB of room. Twice the command, first without
 * room, then with it; then `check`.
 */
const SCRIPT = `
mount -t tmpfs -o size=8m tmpfs "$DATA"
mkdir -m 700 "$DATA/store"; cp "$STORE" "$DATA/store/relay.sqlite"
free=$(df -k --output=avail "$DATA" | tail -1)
head -c $(( (free - LEFT) * 1024 )) /dev/zero > "$DATA/filling"
"$@" unlock 192.0.2.1; echo "first $?"
rm "$DATA/filling"
"$@" unlock 192.0.2.1; echo "then $?"
"$@" check; echo "check $?"
`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-full-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe.skipIf(!CAN_MOUNT)("a full disk (needs root and unshare)", () => {
  test.each([0, 4, 16, 40, 100, 400, 4000])("with %d KB left", (left) => {
    const fixture = (name: string) => readFileSync(join(SERVER, "fixtures/03d9d31", name));
    const { masterKey } = JSON.parse(String(fixture("fixture.json"))) as { masterKey: string };
    const data = join(folder, "data");
    const store = join(folder, "relay.sqlite");
    mkdirSync(data);
    writeFileSync(store, gunzipSync(fixture("store.sqlite.gz")));
    const { stdout, stderr } = spawnSync(
      "unshare",
      ["-m", "sh", "-c", SCRIPT, "sh", process.execPath, MAIN],
      {
        encoding: "utf8",
        timeout: 60_000,
        env: {
          PATH: process.env.PATH ?? "",
          DATA: data,
          STORE: store,
          LEFT: String(left),
          BLINDRELAY_DATA: data,
          BLINDRELAY_MASTER_KEY: masterKey,
        },
      },
    );
    const said = stdout + stderr;
    const [, first] = /^first (\d+)$/m.exec(stdout) ?? [];
    expect(["0", "4"], said).toContain(first);
    // With less than one page of room nothing can be migrated.
    if (left === 0) expect(first).toBe("4");
    if (left >= 4000) expect(first).toBe("0");
    expect(said).toContain("then 0");
    expect(said).toContain("ok     master key");
    expect(said).not.toMatch(/^FAILED (?!free space)/m);
    expect(said).not.toMatch(/a bug in|is damaged/);
  });
});
