/**
 * `/releases`: admins create, publish, roll out and withdraw firmware; all users read.
 */
import { randomUUID } from "node:crypto";
import {
  type AuditAction,
  IdempotencyHeaders,
  NoContent,
  PAGE_LIMIT_DEFAULT,
  type Release,
  ReleaseCreate,
  ReleasePage,
  ReleaseParams,
  ReleasePatch,
  ReleaseQuery,
  Release as ReleaseSchema,
} from "@blindrelay/protocol/schema/rest";
import type { FastifyRequest } from "fastify";
import { isOrderable } from "../../releases/rollout.ts";
import { type Act, noteAct } from "../../store/audit.ts";
import type { Db } from "../../store/open.ts";
import {
  addRelease,
  changeRelease,
  dropDraft,
  findRelease,
  listReleases,
  type RolloutCounts,
  rolloutCounts,
} from "../../store/releases.ts";
import type { ReleaseRow } from "../../store/tables.ts";
import {
  credentialOf,
  isAdmin,
  RELEASE_READERS,
  RELEASE_WRITERS,
  requires,
} from "../base/access.ts";
import type { App, HttpContext } from "../base/context.ts";
import { IDEMPOTENCY_PROBLEMS, idempotently } from "../base/idempotency.ts";
import { cutPage, readPosition } from "../base/pagination.ts";
import { HttpProblem, invalidBody, notFound } from "../base/problem.ts";
import { timestamp } from "../base/time.ts";

export const releaseRoutes = (app: App, context: HttpContext): void => {
  const { store } = context;
  const reading = requires(context, RELEASE_READERS);
  const administering = requires(context, RELEASE_WRITERS);

  app.post(
    "/releases",
    {
      onRequest: administering,
      config: { problems: ["CONFLICT", ...IDEMPOTENCY_PROBLEMS] },
      schema: {
        summary: "Make a draft of a release",
        description: "Upload its artifact next, then publish it.",
        headers: IdempotencyHeaders,
        body: ReleaseCreate,
        response: { 201: ReleaseSchema },
      },
    },
    (request, reply) =>
      idempotently(context, request, reply, async () => {
        const { runtime, channel, version, notes = "" } = request.body;
        if (!isOrderable(version)) throw invalidBody("/version", "has a number that is too big");
        const id = randomUUID();
        const draft = { id, runtime, channel, version, notes, status: "draft" as const };
        const created_at = context.nowMs();
        const added = await store.write(async (tx) => {
          if (!(await addRelease(tx, { ...draft, created_at }))) return false;
          await note(context, request, tx, "release.create", draft);
          return true;
        });
        if (!added) {
          throw new HttpProblem(
            "CONFLICT",
            "This channel already has that version for that runtime.",
          );
        }
        reply.code(201).header("location", `/api/v1/releases/${id}`);
        return shown(context, request, await existing(context, id));
      }),
  );

  app.get(
    "/releases",
    {
      onRequest: reading,
      schema: {
        summary: "Releases, newest first",
        description: "Drafts are shown to admins only.",
        querystring: ReleaseQuery,
        response: { 200: ReleasePage },
      },
    },
    async (request) => {
      const { cursor, limit = PAGE_LIMIT_DEFAULT, ...filter } = request.query;
      const after = readPosition(cursor);
      const drafts = await isAdmin(context, request);
      const found = await listReleases(store.db, { ...filter, drafts }, after, limit + 1);
      const { rows, nextCursor } = cutPage(found, limit, (row) => row.created_at);
      const ids = rows.map(({ id }) => id);
      const counts = seesAll(request) ? await rolloutCounts(store.db, ids) : NO_COUNTS;
      const items = rows.map((row) => releaseAnswer(row, counts.get(row.id)));
      return { items, next_cursor: nextCursor };
    },
  );

  app.get(
    "/releases/:id",
    {
      onRequest: reading,
      schema: {
        summary: "One release, and how far its rollout is",
        params: ReleaseParams,
        response: { 200: ReleaseSchema },
      },
    },
    async (request) => {
      const row = await existing(context, request.params.id);
      if (row.status === "draft" && !(await isAdmin(context, request))) throw notFound("release");
      return shown(context, request, row);
    },
  );

  app.patch(
    "/releases/:id",
    {
      onRequest: administering,
      config: { problems: ["CONFLICT", "UNTRUSTED_SIGNATURE"] },
      schema: {
        summary: "Publish, yank, roll out, or sign",
        description:
          "A draft with an artifact can be published, a published release can be yanked, and a yanked one stays yanked. Setting the current state changes nothing. `list`, `not_after` and `signatures` come together and replace what was there: a published release can be signed again, to be good for longer. Each signature must be by another one of the relay's release keys.",
        params: ReleaseParams,
        body: ReleasePatch,
        response: { 200: ReleaseSchema },
      },
    },
    async (request) => {
      const row = await existing(context, request.params.id);
      const change = changeOf(context, row, request.body);
      if (Object.keys(change).length === 0) return shown(context, request, row);
      const changed = await store.write(async (tx) => {
        const now = await changeRelease(tx, row.id, row.status, change);
        const isOther = change.signatures !== undefined && now?.upload_id !== row.upload_id;
        if (now === undefined || isOther) {
          throw new HttpProblem("CONFLICT", "Somebody else changed this release just now.");
        }
        if (change.signatures !== undefined) await note(context, request, tx, "release.sign", now);
        if (change.status === "published") await note(context, request, tx, "release.publish", now);
        if (change.status === "yanked") await note(context, request, tx, "release.yank", now);
        if (change.percent !== undefined || change.paused !== undefined) {
          await note(context, request, tx, "release.rollout", now);
        }
        return now;
      });
      return shown(context, request, changed);
    },
  );

  app.delete(
    "/releases/:id",
    {
      onRequest: administering,
      config: { problems: ["CONFLICT"] },
      schema: {
        summary: "Delete a draft",
        description: "With its artifact. A published release cannot be deleted: yank it instead.",
        params: ReleaseParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const row = await existing(context, request.params.id);
      const dropped = await store.write(async (tx) => {
        const draft = await dropDraft(tx, row.id);
        if (draft !== undefined) await note(context, request, tx, "release.delete", draft);
        return draft;
      });
      if (dropped === undefined) {
        throw new HttpProblem("CONFLICT", "Only a draft can be deleted: yank what was published.");
      }
      return reply.code(204).send(null);
    },
  );
};

/** Writes an audit entry for an action on a release. */
export const note = (
  context: HttpContext,
  request: FastifyRequest,
  tx: Db,
  action: AuditAction,
  release: Pick<ReleaseRow, "id" | "runtime" | "channel" | "version"> & Partial<ReleaseRow>,
): Promise<void> => {
  const { id, runtime, channel, version, percent, paused } = release;
  const rollout = action === "release.rollout" ? { percent, paused: paused === 1 } : {};
  const { userId, key } = credentialOf(request);
  return noteAct(tx, context.nowMs(), {
    actorId: userId,
    key,
    action,
    subject: id,
    detail: { runtime, channel, version, ...rollout } as Act["detail"] & object,
  });
};

/** A release by its identifier. Throws the 404. */
export const existing = async (context: HttpContext, id: string): Promise<ReleaseRow> => {
  const row = /^[0-9a-f-]{36}$/.test(id) ? await findRelease(context.store.db, id) : undefined;
  if (row === undefined) throw notFound("release");
  return row;
};

const changeOf = (
  context: HttpContext,
  row: ReleaseRow,
  patch: ReleasePatch,
): Partial<ReleaseRow> => {
  const { status = row.status, notes, rollout = {} } = patch;
  if (row.status === "yanked" && patch.signatures !== undefined) {
    throw new HttpProblem("CONFLICT", "A yanked release takes no signatures.");
  }
  const change: Partial<ReleaseRow> = {
    ...(notes === undefined ? {} : { notes }),
    ...(rollout.percent === undefined ? {} : { percent: rollout.percent }),
    ...(rollout.paused === undefined ? {} : { paused: rollout.paused ? 1 : 0 }),
    ...signingOf(context, row, patch),
  };
  if (status === row.status) return change;
  if (status === "published" && row.status === "draft") {
    if (row.upload_id === null) {
      throw new HttpProblem("CONFLICT", "There is nothing to publish: upload the artifact first.");
    }
    return { ...change, status, published_at: context.nowMs() };
  }
  if (status === "yanked" && row.status === "published") return { ...change, status };
  throw new HttpProblem("CONFLICT", `A ${row.status} release cannot become ${status}.`);
};

const signingOf = (
  context: HttpContext,
  row: ReleaseRow,
  { list, not_after, signatures }: ReleasePatch,
): Partial<ReleaseRow> => {
  if (list === undefined && not_after === undefined && signatures === undefined) return {};
  if (list === undefined || not_after === undefined || signatures === undefined) {
    throw invalidBody("", "needs list, not_after and signatures together");
  }
  const { size, sha256 } = row;
  if (size === null || sha256 === null) {
    throw new HttpProblem("CONFLICT", "There is nothing to sign: upload the artifact first.");
  }
  const signers = context.releaseKeys.signers(
    { ...row, size, sha256, list, not_after },
    signatures,
  );
  if (signers.length === 0 || signers.length !== signatures.length) {
    throw new HttpProblem(
      "UNTRUSTED_SIGNATURE",
      "Each signature must be over this release's second text, by another release key of this relay.",
      { errors: [{ path: "/signatures", in: "body", message: "must be of release keys" }] },
    );
  }
  return { list, not_after, signatures: JSON.stringify(signatures) };
};

/** Whether the caller may know of every agent: the counts of a rollout are of all. */
const seesAll = (request: FastifyRequest): boolean =>
  (credentialOf(request).key?.selector ?? null) === null;

const NO_COUNTS: ReadonlyMap<string, RolloutCounts> = new Map();

/** A release as shown by REST, with the counts of its rollout. */
export const shown = async (
  context: HttpContext,
  request: FastifyRequest,
  row: ReleaseRow,
): Promise<Release> => {
  const counts = seesAll(request) ? await rolloutCounts(context.store.db, [row.id]) : NO_COUNTS;
  return releaseAnswer(row, counts.get(row.id));
};

/** The second signed text's part of an answer; nothing where there is none. */
export const secondForm = ({
  list,
  not_after,
  signatures,
}: ReleaseRow): Pick<Release, "list" | "not_after" | "signatures"> =>
  list === null || not_after === null
    ? {}
    : { list, not_after, signatures: JSON.parse(signatures) };

const releaseAnswer = (row: ReleaseRow, counts: RolloutCounts | undefined): Release => ({
  id: row.id,
  runtime: row.runtime,
  channel: row.channel,
  version: row.version,
  status: row.status,
  notes: row.notes,
  size: row.size,
  sha256: row.sha256,
  signature: row.signature,
  key_id: row.key_id,
  ...secondForm(row),
  rollout: {
    percent: row.percent,
    paused: row.paused === 1,
    offered: counts?.offered ?? 0,
    confirmed: counts?.confirmed ?? 0,
    running: counts?.running ?? 0,
    left: counts?.left ?? 0,
  },
  created_at: timestamp(row.created_at),
  published_at: row.published_at === null ? null : timestamp(row.published_at),
});
