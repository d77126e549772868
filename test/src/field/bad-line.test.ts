/**
 * A firmware over a bad line: each connection is cut after some bytes, and the address may end.
 *
 * tier4/ota-client#215, thingsboard/thingsboard-client-sdk#132
 */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { downloadRelease } from "@blindrelay/agent-sdk/node";
import { expect, onTestFinished, test } from "vitest";

const image = randomBytes(400_000);
const sha256 = createHash("sha256").update(image).digest("hex");

/**
 * Serves the image, `cutAt` bytes for each connection; `answers` counts them. Without `ranges` each
 * begins anew.
 */
const badLine = async (cutAt: number) => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-bad-line-"));
  const line = { cutAt, answers: 0, status: 0, ranges: true };
  const server = createServer((request, response) => {
    line.answers++;
    const { range = "" } = line.ranges ? request.headers : {};
    const from = Number(/^bytes=(\d+)-$/.exec(range)?.[1] ?? 0);
    response.writeHead(line.status || (from === 0 ? 200 : 206), {
      "content-length": image.length - from,
    });
    response.write(image.subarray(from, from + line.cutAt), () => {
      if (from + line.cutAt >= image.length) response.end();
      else setImmediate(() => response.destroy());
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/image`;
  const update = { version: "2.0.0", url, size: image.length, sha256, notes: "" };
  return { line, update, path: join(folder, "firmware.bin") };
};

test("it goes on as long as bytes come", async () => {
  const { line, update, path } = await badLine(25_000);
  await downloadRelease(update, path);
  expect(readFileSync(path).equals(image)).toBe(true);
  expect(line.answers).toBeGreaterThanOrEqual(16);
});

test("a line without bytes is given up, and the next call goes on where it was", async () => {
  const { line, update, path } = await badLine(150_000);
  const server = line;
  const first = downloadRelease(update, path);
  const cut = setInterval(() => {
    if (server.answers > 0) server.cutAt = 0;
  }, 0);
  await expect(first).rejects.toMatchObject({ problem: "unreachable" });
  clearInterval(cut);
  const { size } = statSync(`${path}.part`);
  expect(size).toBeGreaterThan(0);
  expect(existsSync(path)).toBe(false);
  line.status = 401;
  await expect(downloadRelease(update, path)).rejects.toMatchObject({ problem: "refused" });
  expect(statSync(`${path}.part`).size).toBe(size);
  Object.assign(line, { status: 0, cutAt: image.length, answers: 0 });
  await downloadRelease(update, path);
  expect(readFileSync(path).equals(image)).toBe(true);
  expect([line.answers, existsSync(`${path}.part`)]).toEqual([1, false]);
});

test("a line that begins anew each time is given up, however many bytes it brings again", async () => {
  const { line, update, path } = await badLine(0);
  line.ranges = false;
  Object.defineProperty(line, "cutAt", { get: () => (line.answers % 2 === 0 ? 1 : 100_000) });
  await expect(downloadRelease(update, path)).rejects.toMatchObject({ problem: "unreachable" });
  // How much of a connection arrives before its end is up to the machine.
  expect(line.answers).toBeGreaterThanOrEqual(6);
});

test("what was kept of another release is fetched anew", async () => {
  const { update, path } = await badLine(image.length);
  writeFileSync(path, "the firmware of today", { mode: 0o755 });
  writeFileSync(`${path}.part`, randomBytes(1000));
  await downloadRelease(update, path);
  expect(readFileSync(path).equals(image)).toBe(true);
  // What has replaced it can be started, as it could.
  expect(statSync(path).mode & 0o777).toBe(0o755);
  writeFileSync(`${path}.part`, randomBytes(image.length + 1));
  await downloadRelease(update, path);
  expect(readFileSync(path).equals(image)).toBe(true);
  // As long as the image: nothing is left to ask for. trevornk/ramblr#68
  writeFileSync(`${path}.part`, randomBytes(image.length));
  await downloadRelease(update, path);
  expect(readFileSync(path).equals(image)).toBe(true);
});
