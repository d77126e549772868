/** `/admin/audit`: who did what, and when. */
import type { AuditEntry } from "@blindrelay/protocol/schema/rest";
import { AuditPage, AuditQuery, PAGE_LIMIT_DEFAULT } from "@blindrelay/protocol/schema/rest";
import { listActs } from "../../store/audit.ts";
import type { Store } from "../../store/open.ts";
import type { AuditRow } from "../../store/tables.ts";
import { ADMINS, requires } from "../base/access.ts";
import type { App, HttpContext } from "../base/context.ts";
import { cutPage, readPosition } from "../base/pagination.ts";
import { timestamp } from "../base/time.ts";

export const adminAuditRoute = (app: App, context: HttpContext): void => {
  app.get(
    "/admin/audit",
    {
      onRequest: requires(context, ADMINS),
      schema: {
        summary: "Who did what, newest first",
        querystring: AuditQuery,
        response: { 200: AuditPage },
      },
    },
    async (request) => {
      const {
        cursor,
        limit = PAGE_LIMIT_DEFAULT,
        action,
        actor_id: actorId,
        subject,
      } = request.query;
      const filter = { action, actorId, subject };
      const found = await listActs(context.store.db, filter, readPosition(cursor), limit + 1);
      const { rows, nextCursor } = cutPage(found, limit, (row) => row.at);
      return { items: rows.map((row) => entryAnswer(context.store, row)), next_cursor: nextCursor };
    },
  );
};

const entryAnswer = (store: Store, row: AuditRow): AuditEntry => ({
  id: row.id,
  at: timestamp(row.at),
  actor:
    row.actor_id === null || row.actor === null ? null : { id: row.actor_id, username: row.actor },
  action: row.action,
  subject: row.subject,
  detail: store.decoded(() => JSON.parse(row.detail) as AuditEntry["detail"]),
});
