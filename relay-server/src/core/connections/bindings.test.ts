/** How much one user can make the relay remember, over all connections. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  FREE_PER_CONNECTION,
  MAX_BINDINGS_PER_USER,
  MAX_REQUEST_IDS_PER_USER,
} from "../limits/limits.ts";
import { RequestIds } from "../limits/request-ids.ts";
import { Bindings } from "./bindings.ts";

const newUser = () => {
  const user = { bindings: 0, requestIds: 0 };
  let count = 0;
  return {
    ...user,
    client: () => ({
      sessionHash: `#${++count}`,
      bound: new Set<string>(),
      latest: null,
      requests: new Set<string>(),
      user,
    }),
    user,
  };
};

type Client = ReturnType<ReturnType<typeof newUser>["client"]>;

describe("bindings of a user with too many", () => {
  it("stay with the connections that have them, and every other connection keeps its latest few", () => {
    const census = { bindings: 0 };
    const bindings = new Bindings<Client>(census, ({ user }) => user);
    const { client } = newUser();
    const bind = (times: number) => {
      const one = client();
      for (let i = 0; i < times; i++) bindings.bind(`${one.sessionHash}-${i}`, one, "lamp");
      return one;
    };
    const first = bind(1024);
    for (let bound = 1024; bound < MAX_BINDINGS_PER_USER; bound += 1024) bind(1024);
    const late = bind(1024);
    expect(late.bound.size).toBe(FREE_PER_CONNECTION);
    expect(bindings.clientFor(`${late.sessionHash}-1023`, "lamp")).toBe(late);
    expect(bindings.clientFor(`${first.sessionHash}-0`, "lamp")).toBe(first);
    expect(census.bindings).toBe(MAX_BINDINGS_PER_USER + FREE_PER_CONNECTION);
    bindings.drop(first);
    expect(bind(1024).bound.size).toBe(1024 - FREE_PER_CONNECTION);
  });
});

describe("request ids of a user with too many", () => {
  it("are limited per user, but each connection keeps a few", () => {
    const ids = new RequestIds<Client>(({ user }) => user);
    const { client, user } = newUser();
    const ask = (times: number, now: number) => {
      const one = client();
      for (let i = 0; i < times; i++) ids.remember("lamp", `${one.sessionHash}-${i}`, one, now);
      return one;
    };
    for (let asked = 0; asked < MAX_REQUEST_IDS_PER_USER; asked += 4096) ask(4096, 0);
    const late = ask(4096, 1);
    expect(late.requests.size).toBe(FREE_PER_CONNECTION);
    expect(ids.clientFor("lamp", `${late.sessionHash}-4095`, user, 1)).toBe(late);
    expect(user.requestIds).toBe(MAX_REQUEST_IDS_PER_USER + FREE_PER_CONNECTION);
    const { client: others } = newUser();
    const other = others();
    for (let i = 0; i < 4096; i++) ids.remember("pump", `o-${i}`, other, 1);
    expect(other.requests.size).toBe(4096);
    ids.expire(60_000);
    expect([user.requestIds, ids.size]).toEqual([FREE_PER_CONNECTION, FREE_PER_CONNECTION + 4096]);
    ids.drop(late);
    expect(user.requestIds).toBe(0);
  });
});

describe("what is charged to a share", () => {
  it("is what its connections have, however they came to it and lose it", () => {
    const user = {};
    const shareOf = ({ share }: { share: { bindings: number; requestIds: number } }) => share;
    const act = fc.record({
      what: fc.nat(6),
      of: fc.nat(5),
      name: fc.constantFrom("C", "D", "E"),
      agent: fc.constantFrom("lamp", "pump"),
      now: fc.constantFrom(0, 59_999, 60_000),
    });
    fc.assert(
      fc.property(fc.array(act, { maxLength: 40 }), (acts) => {
        const shares = [0, 1].map(() => ({ bindings: 0, requestIds: 0 }));
        // Of each session there is one with an access key, and one of another node that is not
        // known to have one.
        const clients = [0, 1, 2, 3, 4, 5].map((n) => ({
          sessionHash: `#${n % 3}`,
          renews: n < 3 ? "#0" : undefined,
          bound: new Set<string>(),
          latest: null,
          requests: new Set<string>(),
          user,
          share: shares[n % 2] as (typeof shares)[0],
        }));
        const bindings = new Bindings<(typeof clients)[0]>({ bindings: 0 }, shareOf);
        const ids = new RequestIds<(typeof clients)[0]>(shareOf);
        for (const { what, of, name, agent, now } of acts) {
          const client = clients[of] as (typeof clients)[0];
          if (what === 0) bindings.bind(name, client, agent);
          else if (what === 1) bindings.agentFor(name, client);
          else if (what === 2) bindings.bindIfFree(name, client, agent);
          else if (what === 3) bindings.dropAgent(agent);
          else if (what === 4) ids.remember(agent, name, client, now);
          else if (what === 5) ids.expire(now);
          else {
            bindings.drop(client);
            ids.drop(client);
          }
          for (const share of shares) {
            const theirs = clients.filter((each) => each.share === share);
            expect(share).toEqual({
              bindings: theirs.reduce((sum, { bound }) => sum + bound.size, 0),
              requestIds: theirs.reduce((sum, { requests }) => sum + requests.size, 0),
            });
          }
        }
      }),
    );
  });
});
