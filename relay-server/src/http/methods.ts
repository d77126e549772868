/**
 * Answers 405 with the allowed methods for another method on a known path, and 404 for any other
 * path.
 */
import type { HTTPMethods } from "fastify";
import type { App } from "./base/context.ts";
import { HttpProblem } from "./base/problem.ts";

export interface Methods {
  /** Adds the 405 routes. Call it after all real routes. */
  answerOthers(app: App): void;
}

/** Records the methods of the routes that follow. */
export const watchMethods = (app: App): Methods => {
  const known = new Map<string, Set<string>>();
  let watching = true;
  app.addHook("onRoute", (route) => {
    if (!watching || route.url.includes("*")) return; // a plugin's route for every path
    const methods = known.get(route.url) ?? new Set();
    for (const method of [route.method].flat()) methods.add(method);
    known.set(route.url, methods);
  });
  app.setNotFoundHandler(() => {
    throw new HttpProblem("NOT_FOUND", "This path does not exist.");
  });
  return {
    answerOthers: (rest) => {
      watching = false;
      for (const [url, methods] of known) answerOthers(rest, url, methods);
    },
  };
};

const answerOthers = (app: App, url: string, methods: ReadonlySet<string>): void => {
  const others = app.supportedMethods.filter((method) => !methods.has(method));
  const allow = [...methods].sort().join(", ");
  app.route({
    method: others as HTTPMethods[],
    url,
    schema: { hide: true }, // not an operation: the document lists the path's real methods
    onRequest: async () => {
      const detail = `This path supports ${allow} only.`;
      throw new HttpProblem("METHOD_NOT_ALLOWED", detail, { headers: { allow } });
    },
    handler: () => undefined,
  });
};
