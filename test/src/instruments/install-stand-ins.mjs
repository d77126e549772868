/**
 * Installs the stand-ins in this process: in those of vitest whose modules Node loads
 * (vitest.config.ts), and in those that a test starts (register.mjs).
 */
import { registerHooks } from "node:module";
import { standIn } from "./stand-ins.ts";

registerHooks({
  resolve: (specifier, context, next) => {
    const resolved = next(specifier, context);
    const instead = standIn(resolved.url, context.parentURL);
    return instead === null ? resolved : { ...resolved, url: instead, shortCircuit: true };
  },
});
