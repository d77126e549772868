/** The REST client in browsers, and in other runtimes with a global `fetch`. */
import { check } from "./check.ts";
import { fetchHttp } from "./fetch.ts";
import { Rest as RestCore, type RestOptions } from "./rest.ts";

export * from "./rest.ts";

export class Rest extends RestCore {
  constructor(options: RestOptions) {
    super(options, { http: fetchHttp, check });
  }
}
