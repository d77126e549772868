/** Every runtime with an edge of its own here; others are tested by test/src/runtime-kit. */
import { describe } from "vitest";
import { RUNTIMES } from "./boards.ts";
import { parityTests } from "./parity-tests.ts";

describe.each(RUNTIMES)("$title", parityTests);
