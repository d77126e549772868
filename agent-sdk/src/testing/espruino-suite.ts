/** The board's suite on Node, with natives as a board with everything has them. */
import { EspruinoSuite } from "../espruino/suite.ts";
import { espruinoCrypto } from "./espruino-natives.ts";

export const espruinoSuite = (): EspruinoSuite =>
  new EspruinoSuite(espruinoCrypto(), () => undefined);
