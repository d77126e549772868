/** One link for the core, while the relay's nodes restart. */
import {
  encodeAuthenticated,
  encodeAuthFailed,
  encodeError,
  encodeRestarting,
} from "@blindrelay/protocol/wire";
import { expect, test } from "vitest";
import { ManualTimer, memoryNetwork, type RelayEnd } from "../memory/index.ts";
import type { LinkPort } from "../ports.ts";
import { movingLinks } from "./moving-links.ts";

const LATENCY_MS = 10;
const REPLACED = encodeError("REPLACED", "another connection", null);
const RESTARTING = encodeRestarting("The relay restarts", 2);

interface Node {
  readonly end: RelayEnd;
  readonly heard: string[];
  closed: number | null;
}

/** A link that is online at the first node. `closeMs`: how long closing takes. */
const world = (closeMs = 0) => {
  const timer = new ManualTimer();
  const nodes: Node[] = [];
  let isUp = true;
  const network = memoryNetwork({
    timer,
    latencyMs: LATENCY_MS,
    accept: (end) => {
      if (!isUp) return false;
      const node: Node = { end, heard: [], closed: null };
      end.received = (text) => node.heard.push(text);
      end.closed = (code) => {
        node.closed = code;
      };
      nodes.push(node);
      return true;
    },
  });
  const core: string[] = [];
  const slow: LinkPort = {
    connect: (url, events) => {
      const link = network.connect(url, events);
      return { ...link, close: (...how) => timer.set(closeMs, () => link.close(...how)) };
    },
  };
  const ports = {
    link: closeMs === 0 ? network : slow,
    timer,
    random: () => new Uint8Array(),
    log: () => undefined,
  };
  const login = { agentId: "pump", relayToken: "agt_1", runtime: "test" };
  const link = movingLinks({ ...login, ports }).connect("wss://relay.example/wss", {
    opened: () => core.push("opened"),
    received: (text) => core.push(text),
    closed: (code) => core.push(`closed ${code}`),
  });
  const pass = (ms = 2 * LATENCY_MS) => timer.advance(ms);
  const node = (place: number) => nodes[place] as Node;
  pass();
  node(0).end.send(encodeAuthenticated("sess_1", 3600, 10));
  pass();
  core.length = 0;
  const setUp = (up: boolean) => {
    isUp = up;
  };
  return { timer, nodes, node, core, link, pass, setUp };
};

const authsOf = ({ heard }: Node) =>
  heard
    .map((text) => JSON.parse(text))
    .map(({ type, api_token, session_token }) => [type, session_token ?? api_token]);

test("a second link is logged in before the first one ends, and the core notices nothing", () => {
  const { node, core, link, pass } = world();
  node(0).end.send(RESTARTING);
  pass(1900);
  link.send('{"n":1}');
  pass(200);
  expect(authsOf(node(1))).toEqual([["auth", "sess_1"]]);
  // From here on nothing more is sent to the first node, and its last messages arrive first.
  link.send('{"n":2}');
  node(0).end.send('{"from":"first"}');
  node(0).end.send(REPLACED);
  node(1).end.send(encodeAuthenticated("sess_1", 3600, 10));
  node(1).end.send('{"from":"second"}');
  node(0).end.close(1008, "REPLACED");
  pass();
  expect(node(0).heard).toEqual(['{"n":1}']);
  expect(node(1).heard.slice(1)).toEqual(['{"n":2}']);
  expect(core).toEqual(['{"from":"first"}', '{"from":"second"}']);
  link.send('{"n":3}');
  pass();
  expect(node(1).heard.slice(1)).toEqual(['{"n":2}', '{"n":3}']);
  node(1).end.close(1006, "cable");
  pass();
  expect(core.at(-1)).toBe("closed 1006");
});

test("a node that does not close the first link is left after a while", () => {
  const { node, core, pass } = world();
  node(0).end.send(RESTARTING);
  pass(2100);
  node(1).end.send(encodeAuthenticated("sess_2", 3600, 10));
  node(1).end.send('{"from":"second"}');
  pass();
  expect(core).toEqual([]);
  pass(3000);
  expect(core).toEqual(['{"from":"second"}']);
  expect(node(0).closed).toBe(1000);
});

test("without another node the first link continues, and further attempts get less frequent", () => {
  const { node, nodes, core, link, pass, setUp } = world();
  setUp(false);
  node(0).end.send(RESTARTING);
  pass(4000);
  link.send('{"n":1}');
  pass();
  expect(node(0).heard).toEqual(['{"n":1}']);
  setUp(true);
  pass(5000);
  expect(nodes).toHaveLength(2);
  node(1).end.send(encodeAuthenticated("sess_2", 3600, 10));
  node(0).end.close(1008, "REPLACED");
  pass();
  expect(core).toEqual([]);
});

test("after a refused session token, the relay token is used on the same connection", () => {
  const { node, pass, core } = world();
  node(0).end.send(RESTARTING);
  pass(2100);
  node(1).end.send(encodeAuthFailed("over", "SESSION_EXPIRED", 0));
  pass();
  expect(authsOf(node(1))).toEqual([
    ["auth", "sess_1"],
    ["auth", "agt_1"],
  ]);
  // Refused permanently: there is no further attempt, which could lock the address out.
  node(1).end.send(encodeAuthFailed("no", "INVALID_TOKEN", 0));
  pass(60_000);
  expect(core).toEqual([]);
  node(0).end.close(1012, "RESTARTING");
  pass();
  expect(core).toEqual(["closed 1012"]);
});

test("after a refusal that asks for a wait, nothing more is sent on that connection", () => {
  const { node, pass, core } = world();
  node(0).end.send(RESTARTING);
  pass(2100);
  node(1).end.send(encodeAuthFailed("later", "LOCKED_OUT", 600));
  pass(60_000);
  expect(authsOf(node(1))).toEqual([["auth", "sess_1"]]);
  expect(core).toEqual([]);
});

test("messages held for the second link are sent on the first one if there is no second", () => {
  const { node, link, pass } = world();
  node(0).end.send(RESTARTING);
  pass(2100);
  link.send('{"n":1}');
  node(1).end.close(1012, "RESTARTING");
  pass();
  expect(node(0).heard).toEqual(['{"n":1}']);
});

test("if both links end, the core is told once, and then nothing is left open", () => {
  const { node, nodes, core, pass } = world();
  node(0).end.send(RESTARTING);
  pass(2100);
  node(0).end.close(1006, "killed");
  pass();
  expect(core).toEqual([]);
  node(1).end.close(1006, "killed");
  pass(60_000);
  expect(core).toEqual(["closed 1006"]);
  expect(nodes).toHaveLength(2);
});

test("a single relay closes before the time it asks for: the core is told of both", () => {
  const { node, nodes, core, pass } = world();
  node(0).end.send(RESTARTING);
  node(0).end.close(1012, "RESTARTING");
  pass(60_000);
  expect(core).toEqual([RESTARTING, "closed 1012"]);
  expect(nodes).toHaveLength(1);
});

test("a link that the core closes ends once, whatever it is doing", () => {
  for (const until of ["before", "dialling", "asking", "only the second"] as const) {
    const { node, nodes, core, link, pass } = world();
    node(0).end.send(RESTARTING);
    pass(until === "before" ? 1000 : until === "dialling" ? 2015 : 2100);
    if (until === "only the second") {
      node(0).end.close(1006, "killed");
      pass();
    }
    link.close(1000, "stopped");
    pass(60_000);
    expect(core, until).toHaveLength(1);
    expect(core[0], until).toMatch(/^closed/);
    expect(
      nodes.every(({ end }) => !end.isOpen),
      until,
    ).toBe(true);
  }
});

test("an agent that another device replaces meanwhile is told so", () => {
  const { node, core, pass } = world();
  node(0).end.send(RESTARTING);
  pass(1000);
  node(0).end.send(REPLACED);
  node(0).end.close(1008, "REPLACED");
  pass();
  expect(core.slice(-2)).toEqual([RESTARTING, "closed 1008"]);
  expect(core).toContain(REPLACED);
});

test("an agent with a second link that ends at once is not reported as replaced", () => {
  for (const isWelcome of [true, false]) {
    const { node, core, pass } = world();
    node(0).end.send(RESTARTING);
    pass(2100);
    if (isWelcome) node(1).end.send(encodeAuthenticated("sess_1", 3600, 10));
    pass();
    node(1).end.close(1006, "killed");
    pass();
    node(0).end.send(REPLACED);
    node(0).end.close(1008, "REPLACED");
    pass();
    // The end of the link that it uses by then.
    expect(core, `welcome: ${isWelcome}`).toEqual([isWelcome ? "closed 1006" : "closed 1008"]);
  }
});

test("a link that is closed no longer moves", () => {
  const { node, nodes, core, link, pass } = world(30_000);
  link.close(1000, "stopped");
  node(0).end.send(RESTARTING);
  pass(60_000);
  expect(core).toEqual(["closed 1000"]);
  expect(nodes).toHaveLength(1);
});
