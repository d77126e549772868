export * from "./account.ts";
export * from "./admin.ts";
export * from "./agents.ts";
export * from "./auth.ts";
export * from "./common.ts";
export * from "./describe.ts";
export * from "./health.ts";
export * from "./releases.ts";
