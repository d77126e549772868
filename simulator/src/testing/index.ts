/** For tests of other packages, in this repository only. */
export { type Draw, seeded } from "../seeded.ts";
