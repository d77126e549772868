/** Who besides its owner may read a file with secrets. */
import { statSync } from "node:fs";

/**
 * "everybody" is a mistake. "group" may be meant: files of a Kubernetes volume belong to root and
 * are for the group of the pod (fsGroup). Windows has no such bits, and Node reports made-up ones.
 */
export const otherReadersOf = (
  path: string,
  platform: NodeJS.Platform = process.platform,
): "everybody" | "group" | null => {
  if (platform === "win32") return null;
  const { mode } = statSync(path);
  if ((mode & 0o007) !== 0) return "everybody";
  return (mode & 0o070) === 0 ? null : "group";
};
