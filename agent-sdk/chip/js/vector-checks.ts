/** Runs on the chip: protocol's conformance runner. */
export { checkVectors } from "@blindrelay/protocol/testing";
