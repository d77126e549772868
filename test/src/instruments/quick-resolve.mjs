/**
 * Starts a process sooner (register.mjs): most of a start is the finding and loading of modules.
 * What is bundled (packages.ts) is loaded from there. A relative import is resolved from memory
 * where a file with the same ending has been imported from the same folder before: all of them have
 * one format. Node would ask the disk about each, link by link; no package here has symbolic links.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const folder = process.env.BLINDRELAY_TEST_PACKAGES;
/** By name and by URL. */
const bundled =
  folder === undefined ? {} : JSON.parse(readFileSync(join(folder, "index.json"), "utf8"));

const RELATIVE = /^\.{1,2}\/.*(\.[a-z]+)$/;
/** By folder and ending. */
const formats = new Map();

/** As Node's own `resolve`; `next` is that. */
export const resolveQuickly = (specifier, context, next) => {
  if (specifier === "node:http") leaveUndici();
  if (specifier in bundled) {
    const { href } = pathToFileURL(join(folder, bundled[specifier]));
    return { url: href, format: "module", shortCircuit: true };
  }
  const { conditions, parentURL } = context;
  const ending = RELATIVE.exec(specifier)?.[1];
  if (ending === undefined || !parentURL?.startsWith("file:") || !conditions.includes("import")) {
    return next(specifier, context);
  }
  const { href } = new URL(specifier, parentURL);
  const kind = href.slice(0, href.lastIndexOf("/")) + ending;
  const format = formats.get(kind);
  if (format !== undefined) return { url: href, format, shortCircuit: true };
  const resolved = next(specifier, context);
  if (resolved.url === href && resolved.format) formats.set(kind, resolved.format);
  return resolved;
};

/** An import of node:http reads all of its members, and these, which nobody uses, load undici. */
const leaveUndici = () => {
  const http = process.getBuiltinModule("node:http");
  for (const name of ["WebSocket", "CloseEvent", "MessageEvent"]) delete http[name];
};
