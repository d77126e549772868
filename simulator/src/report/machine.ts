/** Describes the machine for a report, and its limits. */
import { execFileSync } from "node:child_process";
import { arch, cpus, platform, release, totalmem } from "node:os";
import type { Machine } from "./report.ts";

/** This machine, as far as it explains a figure; nothing that identifies it or its owner. */
export function machine(): Machine {
  const processors = cpus();
  return {
    cpus: processors.length,
    cpu_model: processors[0]?.model.trim() || "unknown",
    memory_bytes: totalmem(),
    platform: `${platform()} ${arch()} ${release()}`,
    node: process.version,
  };
}

/** The number of files a child process may open; null for no limit, or without a shell to ask. */
export function openFileLimit(): number | null {
  try {
    const limit = Number(
      execFileSync("/bin/sh", ["-c", "ulimit -n"], {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
      }),
    );
    return Number.isFinite(limit) ? limit : null;
  } catch {
    return null;
  }
}

/** A warning with the fix if `limit` is too low for `agents` sockets in a process; else null. */
export function openFileWarning(agents: number, limit: number | null): string | null {
  const needed = agents + 256;
  if (limit === null || limit >= needed) return null;
  return `warning: ${agents} agents need about ${needed} open files and this shell allows ${limit}; raise it with: ulimit -n ${needed}`;
}
