/** For tests: Debian's Chromium, as root and without a network. */
import { existsSync } from "node:fs";

/** Tests in a browser are shown as skipped where it is not installed. */
export const CHROMIUM = "/usr/bin/chromium";
export const HAS_CHROMIUM = existsSync(CHROMIUM);
export const CHROMIUM_FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
/** For one step; many times what it needs alone: it may share two cores with much else. */
export const BROWSER_TIMEOUT_MS = 180_000;
