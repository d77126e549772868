/**
 * The agent core reaches the outside only through these ports. Each runtime implements them in one
 * small edge (src/node, src/memory, src/embedded, src/espruino, src/moddable), which all pass the
 * tests of src/testing/conformance. All but storage are shared with the client's core: see
 * protocol/src/ports.ts.
 *
 * [portable] types only, nothing is left of this file at run time.
 */
export type {
  Link,
  LinkEvents,
  LinkPort,
  Log,
  LogLevel,
  Random,
  TimerPort,
} from "@blindrelay/protocol";

/**
 * Small named texts on a medium that survives a power cut. Names: lower-case letters, digits, ".",
 * at most 28.
 */
export interface StoragePort {
  /**
   * What the medium holds now, or null if there is nothing by that name. Throws if it cannot be
   * read.
   */
  read(name: string): string | null;
  /**
   * Durable when it returns; cut short, it leaves anything under this name and nothing else
   * changed.
   */
  write(name: string, text: string): void;
}
