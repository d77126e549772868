/**
 * Packet versions "3" and "4" on Moddable: `import { forward } from "blindrelay/forward"`, then
 * `startAgent({ forward, … })`.
 */
export { forward } from "../embedded/forward.ts";
