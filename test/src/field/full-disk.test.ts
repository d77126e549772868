/**
 * A disk that fills while a firmware is downloaded, on a real file system of its own (tmpfs).
 *
 * transmission/transmission#2367, kevinmcaleer/Snakie#825
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const CAN_MOUNT = spawnSync("unshare", ["-m", "true"]).status === 0;
const RELEASES = import.meta.resolve("@blindrelay/agent-sdk/node");

/** Downloads into $1 with $2 bytes already taken there, and prints what became of it. */
const PROGRAM = `
import { createHash } from "node:crypto";
import http from "node:http";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { downloadRelease } from ${JSON.stringify(RELEASES)};
const [update, folder, later] = process.argv.slice(1).map((one) => JSON.parse(one));
const path = folder + "/firmware.bin";
// Another program fills the disk after the space was looked at.
const { request } = http;
if (later > 0) http.request = (...args) => {
  if (!existsSync(folder + "/other")) writeFileSync(folder + "/other", Buffer.alloc(later));
  return request(...args);
};
let kind = "ok";
try { await downloadRelease(update, path); } catch (error) { kind = error.problem ?? String(error); }
const hash = existsSync(path) ? createHash("sha256").update(readFileSync(path)).digest("hex") : null;
console.log(JSON.stringify({ kind, hash, files: readdirSync(folder).filter((name) => name !== "other") }));
`;

describe.skipIf(!CAN_MOUNT)("a disk with room for 40 KB (needs root and unshare)", () => {
  const images = new Map<string, Buffer>();
  let requests = 0;
  const server = createServer((request, response) => {
    requests++;
    const image = images.get(request.url ?? "") as Buffer;
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
    response.writeHead(from === 0 ? 200 : 206).end(image.subarray(from));
  });
  let base = "";
  beforeAll(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());

  it.each([
    [30_000, 0, "ok"],
    [60_000, 0, "disk"],
    [200_000, 0, "disk"],
    // There was room when the download began.
    [30_000, 30_000, "disk"],
    [39_000, 20_000, "disk"],
  ])(
    "an image of %d bytes, %d of them taken by others meanwhile: %s",
    async (size, later, kind) => {
      const image = randomBytes(size);
      const name = `/${size}-${later}`;
      images.set(name, image);
      requests = 0;
      const sha256 = createHash("sha256").update(image).digest("hex");
      const update = { version: "2.0.0", url: `${base}${name}`, size, sha256, notes: "" };
      const mount =
        'd=$(mktemp -d); mount -t tmpfs -o size=40k tmpfs "$d"; "$@" "\\"$d\\"" "$LATER"';
      const node = [process.execPath, "--input-type=module", "-e", PROGRAM, JSON.stringify(update)];
      const child = spawn("unshare", ["-m", "sh", "-c", mount, "sh", ...node], {
        env: { PATH: process.env.PATH ?? "", LATER: String(later) },
        stdio: ["ignore", "pipe", "inherit"],
      });
      const said = JSON.parse(await text(child.stdout));
      const files = kind === "ok" ? ["firmware.bin"] : [];
      expect(said).toEqual({ kind, hash: kind === "ok" ? sha256 : null, files });
      // A disk that is full does not become emptier by asking again.
      expect(requests).toBeLessThanOrEqual(1);
    },
  );
});
