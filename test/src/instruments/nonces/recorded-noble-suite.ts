/** Replaces `@blindrelay/protocol/suites/noble` in all tests: see ../stand-ins.ts. */
import { nobleSuite as plain } from "../../../../protocol/src/suites/noble.ts";
import { processRecorder, recorded } from "./recorder.ts";

export * from "../../../../protocol/src/suites/noble.ts";
export const nobleSuite = () => recorded(plain(), processRecorder());
