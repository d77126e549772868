/** `/releases/check`: a device asks for an update. The answer is never a downgrade. */
import { CheckAnswer, CheckQuery } from "@blindrelay/protocol/schema/rest";
import { isOrderable, releaseFor } from "../../releases/rollout.ts";
import { makeTicket } from "../../releases/tickets.ts";
import { findAgent } from "../../store/agents.ts";
import { leftBy, noteOffer, publishedReleases, wasOffered } from "../../store/releases.ts";
import type { ReleaseRow } from "../../store/tables.ts";
import { type Access, credentialOf, requires } from "../base/access.ts";
import type { App, HttpContext } from "../base/context.ts";
import { HttpProblem } from "../base/problem.ts";
import { httpBase } from "../base/relay-url.ts";
import { timestamp } from "../base/time.ts";
import { secondForm } from "./releases.ts";

/** The only place where REST accepts agents' tokens. */
const ANYBODY: Access = {
  holders: ["account", "login", "client_session", "agent", "agent_session"],
  scopes: ["read", "releases"],
};

export const releaseCheckRoute = (app: App, context: HttpContext): void => {
  app.get(
    "/releases/check",
    {
      onRequest: requires(context, ANYBODY),
      schema: {
        summary: "Whether there is a release above the one that runs",
        description:
          "With an agent's token the answer follows the rollout, and `runtime` is the one that the agent reported unless the query names another. Users see every published release, regardless of its rollout. `latest` is null if no release is above `version`.",
        querystring: CheckQuery,
        response: { 200: CheckAnswer },
      },
    },
    async (request): Promise<CheckAnswer> => {
      const { channel, version } = request.query;
      if (!isOrderable(version)) {
        throw new HttpProblem("VALIDATION_FAILED", "The version is not valid SemVer 2.0.0.", {
          errors: [{ path: "/version", in: "querystring", message: "must be SemVer, like 1.4.0" }],
        });
      }
      const { userId, agentId } = credentialOf(request);
      const runtime = request.query.runtime ?? (await reportedRuntime(context, userId, agentId));
      const published = await publishedReleases(context.store.db, channel, runtime);
      // A version that this device has left is not offered again: it would boot it, fail and fall
      // back for ever.
      const left =
        agentId === null
          ? new Set()
          : await leftBy(
              context.store.db,
              agentId,
              published.map(({ id }) => id),
            );
      const offered = published.filter(({ id }) => !left.has(id));
      const release = releaseFor(offered, version, agentId);
      if (release !== null && agentId !== null) await note(context, release, agentId);
      return {
        update_available: release !== null,
        channel,
        current: version,
        latest: release === null ? null : offer(context, release, httpBase(context, request)),
      };
    },
  );
};

/** The runtime's name, the first word of the agent's report; null if it reported nothing. */
const reportedRuntime = async (
  context: HttpContext,
  userId: string,
  agentId: string | null,
): Promise<string | null> => {
  if (agentId === null) return null;
  const said = (await findAgent(context.store.db, userId, agentId))?.runtime ?? null;
  return said?.split(" ")[0]?.toLowerCase() ?? null;
};

/** Looked up first: devices ask every hour, and a disk flush for each would be wasteful. */
const note = async (context: HttpContext, release: ReleaseRow, agentId: string): Promise<void> => {
  if (await wasOffered(context.store.db, release.id, agentId)) return;
  const nowMs = context.nowMs();
  await context.store.write((tx) => noteOffer(tx, release.id, agentId, nowMs));
};

const offer = (
  context: HttpContext,
  release: ReleaseRow,
  base: string,
): NonNullable<CheckAnswer["latest"]> => {
  const { size, sha256, signature, key_id, published_at } = release;
  if (
    size === null ||
    sha256 === null ||
    signature === null ||
    key_id === null ||
    published_at === null
  ) {
    throw new Error("a published release lacks its artifact: the store was altered");
  }
  const ticket = makeTicket(context.secrets, release.id, context.nowMs());
  return {
    version: release.version,
    runtime: release.runtime,
    url: `${base}/api/v1/releases/${release.id}/artifact?ticket=${ticket}`,
    sha256,
    size,
    signature,
    key_id,
    ...secondForm(release),
    notes: release.notes,
    published_at: timestamp(published_at),
  };
};
