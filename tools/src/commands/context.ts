/** What every command can use. */
import type { Settings } from "../config/settings.ts";

export interface Context {
  /** Read late, so that a command that needs no profile never opens one. */
  settings(): Settings;
}
