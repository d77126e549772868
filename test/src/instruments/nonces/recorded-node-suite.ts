/** Replaces `@blindrelay/protocol/suites/node` in all tests: see ../stand-ins.ts. */
import { nodeSuite as plain } from "../../../../protocol/src/suites/node.ts";
import { processRecorder, recorded } from "./recorder.ts";

export * from "../../../../protocol/src/suites/node.ts";
export const nodeSuite = () => recorded(plain(), processRecorder());
