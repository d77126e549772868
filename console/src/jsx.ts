/** What JSX becomes: `build.ts` imports it wherever there is JSX. */
export { Fragment, h } from "preact";
