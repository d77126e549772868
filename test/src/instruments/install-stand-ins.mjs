/**
 * Installs the stand-ins in this process: in those of vitest whose modules Node loads
 * (vitest.config.ts), and in those that a test starts (register.mjs). Takes packages as they are
 * published: vitest's condition "development" leads to TypeScript in some, which Node refuses.
 */
import { registerHooks } from "node:module";
import { standIn } from "./stand-ins.ts";

registerHooks({
  resolve: (specifier, context, next) => {
    const conditions = context.conditions.filter((each) => each !== "development");
    const resolved = next(specifier, { ...context, conditions });
    const instead = standIn(resolved.url, context.parentURL);
    return instead === null ? resolved : { ...resolved, url: instead, shortCircuit: true };
  },
});
