/**
 * `agent.storage` on Moddable, for programs that keep something: `startAgent({ program:
 * withStorage(program), … })`. A module of its own, so that a project without it does not contain
 * it.
 */
import values from "blindrelay/values";
import type { Program } from "../core/agent.ts";
import { withStorage as withPort } from "../core/give-storage.ts";
import { valueStorage } from "./storage.ts";

export const withStorage = (program: Program): Program => withPort(program, valueStorage(values));
