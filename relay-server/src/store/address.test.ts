import { expect, it } from "vitest";
import { storeProblem } from "./address.ts";

it.each([
  "sqlite",
  "postgres://ada:secret@db/relay",
  "postgresql://ada@[::1]:5433/relay?sslmode=verify-full&sslrootcert=/a,b",
  "postgres://ada:a%2Cb@db/relay",
  "postgres://ada:a,b@db/relay",
  "postgres:///relay?host=/var/run/postgresql",
  "postgresql://ada:secret@/relay?host=/cloudsql/project:region:instance",
  "postgres://ada@/relay?host=/var/run/postgresql",
  "postgres://ada@%2Fvar%2Frun%2Fpostgresql/relay",
])("%s may be right", (store) => {
  expect(storeProblem(store)).toBeNull();
});

it.each([
  ["host=db dbname=relay", /must be sqlite .* or postgres:\/\//],
  ["mysql://db/relay", /must be sqlite/],
  ["postgres://db-1,db-2/relay", /several hosts/],
  ["postgres://ada:secret@db-1:5432,db-2:5432/relay", /several hosts/],
  ["postgres://ada:sec#ret@db/relay", /not a valid address: .* write # as %23/],
  ["postgres://ada:sec/ret@db/relay", /not a valid address/],
])("%s is refused, and its password not said", (store, reason) => {
  expect(storeProblem(store)).toMatch(reason);
  expect(storeProblem(store)).not.toContain("sec");
});
