export * from "./auth.ts";
export * from "./messages.ts";
export * from "./packet.ts";
export * from "./relay.ts";
