/**
 * The REST client without an edge: for pages that a relay itself serves, which gain nothing from
 * checks of its answers, and for other ways to make a request.
 */
export { fetchHttp } from "./fetch.ts";
export * from "./rest.ts";
