/** The REST client on Node: through the environment's proxy, with uploads as they are read. */
import type { HttpPort } from "@blindrelay/protocol/net";
import type { ProxySetting } from "@blindrelay/protocol/net/node";
import { check } from "./check.ts";
import { Rest as RestCore, type RestOptions } from "./rest.ts";

export * from "./rest.ts";

export interface NodeRestOptions extends RestOptions {
  /** As in the options of `connect`. */
  readonly proxy?: ProxySetting;
}

export class Rest extends RestCore {
  constructor(options: NodeRestOptions) {
    let way: Promise<HttpPort> | null = null;
    // Loaded with the first request, because most programs make none at their start.
    const load = async (): Promise<HttpPort> =>
      (await import("@blindrelay/protocol/net/node")).nodeHttp(options.proxy);
    const http: HttpPort = async (request) => {
      way ??= load();
      return (await way)(request);
    };
    super(options, { check, http });
  }
}
