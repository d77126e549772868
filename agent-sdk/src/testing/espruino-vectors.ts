/**
 * The conformance runner with the board's suite, as a module for a real Espruino's Storage.
 *
 * [portable]
 */
import { checkVectors } from "@blindrelay/protocol/testing";
import type { EspruinoCrypto } from "../espruino/board.ts";
import { EspruinoSuite } from "../espruino/suite.ts";

/** `files`: VectorFiles as JSON. Returns one sentence for each failure. */
export const check = (crypto: EspruinoCrypto, files: string): string[] =>
  checkVectors(new EspruinoSuite(crypto, () => {}), JSON.parse(files));
