/** Runs in XS: protocol's conformance runner with the suite of the Moddable build. */
import { nobleX25519 } from "@blindrelay/protocol/suites/noble-x25519";
import { checkVectors } from "@blindrelay/protocol/testing";
import { checkField } from "@blindrelay/protocol/testing/forward";
import { moddableSuite } from "../../moddable/suite.ts";
import { hear } from "./bridge.ts";
import { crypt } from "./crypt.ts";

hear("vectors", ({ field, text, native }) => {
  const suite = moddableSuite(native ? crypt : {});
  const file: unknown = JSON.parse(text);
  return checkField(suite, nobleX25519, field, file) ?? checkVectors(suite, { [field]: file });
});
