/** `/admin/stats`: the relay's main figures; counters run from its start. */
import { AdminStats } from "@blindrelay/protocol/schema/rest";
import { countAgents, countUsers } from "../../store/users.ts";
import { ADMINS, requires } from "../base/access.ts";
import type { App, HttpContext } from "../base/context.ts";

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

export const adminStatsRoute = (app: App, context: HttpContext): void => {
  app.get(
    "/admin/stats",
    {
      onRequest: requires(context, ADMINS),
      schema: { summary: "The relay at a glance", response: { 200: AdminStats } },
    },
    async (): Promise<AdminStats> => {
      const { hub, others, startedAtMs, eventLoopDelay } = context.figures();
      const nodes = [hub, ...others];
      const { db } = context.store;
      return {
        uptime_s: Math.floor((context.steadyMs() - startedAtMs) / 1000),
        versions: { relay: context.version, node: process.versions.node },
        users: await countUsers(db),
        agents: {
          total: await countAgents(db),
          online: sum(nodes.map((node) => node.agentsOnline)),
        },
        connections: {
          client: sum(nodes.map(({ connections }) => connections.client)),
          agent: sum(nodes.map(({ connections }) => connections.agent)),
          firmware: sum(nodes.map(({ connections }) => connections.firmware)),
          waiting: sum(nodes.map(({ connections }) => connections.waiting)),
          closing: sum(nodes.map(({ connections }) => connections.closing)),
        },
        messages: {
          forwarded: hub.counters.forwardedToAgents + hub.counters.forwardedToClients,
          dropped: Object.fromEntries(hub.counters.dropped),
        },
        auth_failures: context.lockout.failures,
        lockouts: context.lockout.lockouts + context.usernameLockout.lockouts,
        queue_bytes: hub.queueBytes,
        event_loop_delay: {
          mean_ms: eventLoopDelay.meanMs,
          p99_ms: eventLoopDelay.p99Ms,
          max_ms: eventLoopDelay.maxMs,
        },
      };
    },
  );
};
