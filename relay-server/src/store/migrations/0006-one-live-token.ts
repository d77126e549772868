/** An owner has one valid persistent token, even after two concurrent rotations. */
import { type Kysely, sql } from "kysely";

export const up = async (db: Kysely<unknown>): Promise<void> => {
  // PostgreSQL could be left with several; the newest is the one that exports show.
  await sql`
    update tokens set retired_at = issued_at
    where retired_at is null and exists (
      select 1 from tokens as newer
      where newer.user_id = tokens.user_id
        and coalesce(newer.agent_id, '') = coalesce(tokens.agent_id, '')
        and newer.retired_at is null
        and (newer.issued_at > tokens.issued_at
          or (newer.issued_at = tokens.issued_at and newer.hash > tokens.hash))
    )`.execute(db);
  await sql`
    create unique index tokens_one_live on tokens (user_id, coalesce(agent_id, ''))
    where retired_at is null`.execute(db);
};
