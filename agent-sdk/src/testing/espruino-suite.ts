/** The board's suite on Node, with the natives of a fully equipped board. */
import { EspruinoSuite } from "../espruino/suite.ts";
import { espruinoCrypto } from "./espruino-natives.ts";

export const espruinoSuite = (): EspruinoSuite =>
  new EspruinoSuite(espruinoCrypto(), () => undefined);
