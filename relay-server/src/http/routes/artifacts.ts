/**
 * `/releases/{id}/artifact`: the bytes of a release, uploaded as a stream and downloaded in ranges.
 */
import { Readable } from "node:stream";
import { ARTIFACT_MEDIA_TYPE, SIGNATURE_HEADER } from "@blindrelay/protocol/releases";
import {
  ArtifactBody,
  ArtifactHeaders,
  ArtifactQuery,
  Release,
  ReleaseParams,
} from "@blindrelay/protocol/schema/rest";
import type { FastifyRequest } from "fastify";
import { Type } from "typebox";
import { artifactStream, readRange } from "../../releases/artifact.ts";
import { isTicket } from "../../releases/tickets.ts";
import { receiveArtifact } from "../../releases/upload.ts";
import type { ReleaseRow } from "../../store/tables.ts";
import { confirmIn, isAdmin, RELEASE_READERS, RELEASE_WRITERS, requires } from "../base/access.ts";
import type { App, HttpContext } from "../base/context.ts";
import { namesEtag } from "../base/etag.ts";
import { HttpProblem, invalidHeader, notFound } from "../base/problem.ts";
import { existing, note, shown } from "./releases.ts";

type ArtifactRequest = FastifyRequest<{ Params: { id: string } }>;

export const artifactRoutes = (app: App, context: HttpContext): void => {
  // Only here: anywhere else such a body is a 415, as JSON is here.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(ARTIFACT_MEDIA_TYPE, (_request, payload, done) => done(null, payload));

  app.put(
    "/releases/:id/artifact",
    {
      onRequest: requires(context, RELEASE_WRITERS),
      bodyLimit: context.maxReleaseBytes,
      config: { streams: true, problems: ["CONFLICT", "UNTRUSTED_SIGNATURE"] },
      schema: {
        summary: "Upload the artifact of a draft",
        description:
          "Accepted only with a signature by one of the relay's release keys over the bytes that arrived. Uploading again replaces it, until it is published.",
        consumes: [ARTIFACT_MEDIA_TYPE],
        params: ReleaseParams,
        headers: ArtifactHeaders,
        body: ArtifactBody,
        response: { 200: Release },
      },
    },
    async (request) => {
      const draft = await existing(context, request.params.id);
      if (draft.status !== "draft") throw notDraft();
      if (context.releaseKeys.count === 0) {
        throw untrusted("This relay has no release keys: start it with --release-keys.");
      }
      if (Number(request.headers["content-length"] ?? 0) > context.maxReleaseBytes) {
        throw tooLarge(context);
      }
      const signature = (request.headers as ArtifactHeaders)[SIGNATURE_HEADER];
      const result = await receiveArtifact(
        context,
        context.releaseKeys,
        draft,
        signature,
        bodyOf(request),
        context.maxReleaseBytes,
        async (tx, row) => {
          await confirmIn(tx, context, request);
          await note(context, request, tx, "release.upload", row);
        },
      );
      if (result.ok) return shown(context, request, result.row);
      switch (result.problem) {
        case "empty":
          throw new HttpProblem("VALIDATION_FAILED", "The artifact is empty.", {
            errors: [{ path: "", in: "body", message: "must not be empty" }],
          });
        case "too_large":
          throw tooLarge(context);
        case "untrusted":
          throw untrusted("No release key of this relay made that signature over these bytes.");
        case "not_a_draft":
          throw notDraft();
      }
    },
  );

  app.get(
    "/releases/:id/artifact",
    {
      onRequest: requires(context, {
        ...RELEASE_READERS,
        unless: (request) => hasTicket(context, request as ArtifactRequest),
      }),
      config: { streams: true, problems: ["RANGE_NOT_SATISFIABLE"] },
      schema: {
        summary: "The artifact of a release",
        description:
          "Whole, or one range of it. `releases/check` gives a `url` with a ticket, which needs no token. Drafts and yanked releases are for admins only.",
        params: ReleaseParams,
        querystring: ArtifactQuery,
        response: {
          200: BYTES,
          206: { ...BYTES, description: "The range asked for." },
          304: Type.Null({ description: "It is the one that If-None-Match names." }),
        },
      },
    },
    async (request, reply) => {
      const row = await existing(context, request.params.id);
      if (row.status !== "published" && !(await mayPreview(context, request))) {
        throw notFound("release");
      }
      const { upload_id: uploadId, size, sha256 } = row;
      if (uploadId === null || size === null || sha256 === null) throw notFound("artifact");
      const etag = `"${sha256}"`;
      reply.headers({ etag, "accept-ranges": "bytes", "cache-control": "private, no-cache" });
      if (namesEtag(request.headers["if-none-match"], etag))
        return reply.code(304).send(undefined as never);
      const fresh = request.headers["if-range"] ?? etag;
      const range = fresh === etag ? readRange(request.headers.range, size) : null;
      if (range === "unsatisfiable") {
        throw new HttpProblem("RANGE_NOT_SATISFIABLE", `The artifact has ${size} bytes.`, {
          headers: { "content-range": `bytes */${size}` },
        });
      }
      const { from, to } = range ?? { from: 0, to: size - 1 };
      if (range !== null) reply.code(206).header("content-range", `bytes ${from}-${to}/${size}`);
      reply.type(ARTIFACT_MEDIA_TYPE).headers({
        "content-length": String(to - from + 1),
        "content-disposition": `attachment; filename="${fileName(row)}"`,
      });
      // Many devices may download at once, and others have requests, too.
      const turn = () => request.server.requestLimits.pause("downloads");
      // Fastify reads to its end what a HEAD is answered with.
      const body =
        request.method === "HEAD"
          ? Readable.from([])
          : artifactStream(context.store.db, uploadId, { from, to }, reply.raw, turn);
      return reply.send(body as never);
    },
  );
};

const BYTES = {
  description: "The whole artifact.",
  content: { [ARTIFACT_MEDIA_TYPE]: { schema: ArtifactBody } },
};

/** The parser passes the stream on; without any body it never ran. */
const bodyOf = (request: FastifyRequest): Readable =>
  (request.body as Readable | undefined) ?? request.raw;

const hasTicket = (context: HttpContext, request: ArtifactRequest): boolean => {
  const { ticket } = request.query as { ticket?: unknown };
  return (
    typeof ticket === "string" &&
    isTicket(context.secrets, request.params.id, ticket, context.nowMs())
  );
};

const mayPreview = async (context: HttpContext, request: ArtifactRequest): Promise<boolean> =>
  !hasTicket(context, request) && (await isAdmin(context, request));

/** All of these consist of harmless characters. */
const fileName = (row: ReleaseRow): string => `${row.runtime}-${row.channel}-${row.version}.bin`;

const tooLarge = (context: HttpContext): HttpProblem =>
  new HttpProblem("TOO_LARGE", `An artifact has at most ${context.maxReleaseBytes} bytes here.`, {
    headers: { connection: "close" }, // the rest of the upload is not read
  });

const untrusted = (detail: string): HttpProblem =>
  invalidHeader("UNTRUSTED_SIGNATURE", detail, SIGNATURE_HEADER, "must be one of a release key");

const notDraft = (): HttpProblem =>
  new HttpProblem("CONFLICT", "Only a draft takes an artifact: what was published never changes.");
