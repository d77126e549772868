/**
 * The conformance runner with the board's suite, as a module for a real Espruino's Storage.
 *
 * [portable]
 */
import { checkVectors } from "@blindrelay/protocol/testing";
import type { EspruinoCrypto } from "../espruino/board.ts";
import { EspruinoSuite } from "../espruino/suite.ts";

/**
 * `files`: JSON text of VectorFiles. Returns a sentence for everything that is not as it should be.
 */
export const check = (crypto: EspruinoCrypto, files: string): string[] =>
  checkVectors(new EspruinoSuite(crypto, () => {}), JSON.parse(files));
