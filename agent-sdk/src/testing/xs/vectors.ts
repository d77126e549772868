/** Runs in XS: protocol's conformance runner with the suite of the Moddable build. */
import { checkVectors } from "@blindrelay/protocol/testing";
import { moddableSuite } from "../../moddable/suite.ts";
import { hear } from "./bridge.ts";
import { crypt } from "./crypt.ts";

hear("vectors", ({ field, text, native }) =>
  checkVectors(moddableSuite(native ? crypt : {}), { [field]: JSON.parse(text) }),
);
