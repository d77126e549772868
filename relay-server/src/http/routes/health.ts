/** `/health` at the root: live means that the process responds, ready that it accepts new work. */
import type { IncomingMessage } from "node:http";
import type { ErrorCode } from "@blindrelay/protocol";
import { Health } from "@blindrelay/protocol/schema/rest";
import type { App, HttpContext } from "../base/context.ts";
import { HttpProblem } from "../base/problem.ts";

const OK: Health = { status: "ok" };
const schema = (summary: string) => ({ summary, response: { 200: Health } });
/** A supervisor may poll as often as it likes. */
const UNLIMITED = { unlimited: true };
const MAY_BE_AWAY = { ...UNLIMITED, problems: ["UNAVAILABLE"] as ErrorCode[] };

/** Known before the request has a route. */
export const isHealth = ({ url = "" }: IncomingMessage): boolean =>
  /^\/health(\/live|\/ready)?(\?|$)/.test(url);

export const healthRoutes = (app: App, context: HttpContext): void => {
  app.get(
    "/health",
    { config: UNLIMITED, schema: schema("Whether the process answers") },
    async () => OK,
  );
  app.get(
    "/health/live",
    { config: UNLIMITED, schema: schema("Whether to leave the process running") },
    async () => OK,
  );
  app.get(
    "/health/ready",
    { config: MAY_BE_AWAY, schema: schema("Whether to send it new work") },
    async () => {
      if (await context.isReady()) return OK;
      throw new HttpProblem(
        "UNAVAILABLE",
        "The relay is draining or rebalancing, or its store is unavailable.",
      );
    },
  );
};
