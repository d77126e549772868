/** What the agent's link says of itself: its counters, and the lines of its log. */
import { OUTBOX_BYTES } from "@blindrelay/protocol";
import { describe, expect, it } from "vitest";
import { World } from "../testing/world.ts";

/** What the log says from now on: each line with its fields. */
const logOf = (world: World) => {
  const from = world.logs.length;
  return () => world.logs.slice(from).map((line, i) => [line, world.logFields[from + i]]);
};

const error = (code: string, text = "as asked") => ({ type: "error", code, error: text });

describe("the log", () => {
  it("says why a login failed, and how long the agent waits", () => {
    const world = new World();
    const log = logOf(world);
    world.core.start();
    world.settle();
    world.fail("INVALID_TOKEN");
    const { advice, waitMs } = world.core.link.status;
    expect(log()).toEqual([
      ["warn: login failed", { code: "INVALID_TOKEN", error: "Invalid token" }],
      [`warn: ${advice}`, { code: "INVALID_TOKEN", waitMs }],
    ]);
  });

  it("says what a person has to mend", () => {
    const world = new World();
    world.core.start();
    world.settle();
    const log = logOf(world);
    world.fail("WRONG_TOKEN_KIND");
    expect(log().at(-1)).toEqual([
      `error: ${world.core.link.status.advice}`,
      { code: "WRONG_TOKEN_KIND" },
    ]);
  });

  it("says what the relay reports, how its link ended, and that it is nothing special", () => {
    const world = new World().online();
    const log = logOf(world);
    world.say(error("AGENT_OFFLINE", "Nobody there"));
    world.link().end.close(1011, "full");
    world.settle();
    expect(log()).toEqual([
      ["debug: the relay reports an error", { code: "AGENT_OFFLINE", error: "Nobody there" }],
      ["info: link closed", { code: 1011, reason: "full" }],
      [expect.stringMatching(/^info: /), { code: null, waitMs: world.core.link.status.waitMs }],
    ]);
  });

  it("says which listener failed", () => {
    const world = new World();
    const log = logOf(world);
    world.core.link.onState(() => {
      throw new Error("mine");
    });
    world.core.start();
    expect(log()).toEqual([["error: a listener to the state failed", { reason: "Error: mine" }]]);
  });
});

describe("the counters", () => {
  it("are of logins, of errors, and of messages that mean nothing to an agent", () => {
    const world = new World();
    const { counters } = world.core.link;
    world.core.start();
    world.settle();
    world.say({ type: "agent_status", agent_id: "pump", online: true });
    expect(counters).toEqual({ logins: 0, unreadable: 1, relayErrors: 0, dropped: 0 });
    world.accept();
    world.say({ type: "auth_response", status: "failed", code: "INVALID_TOKEN" });
    world.say(error("AGENT_OFFLINE"));
    world.say("no JSON");
    world.link().end.close(1006, "cable");
    world.untilConnected();
    world.accept();
    expect(counters).toEqual({ logins: 2, unreadable: 2, relayErrors: 1, dropped: 0 });
  });
});

it("sends until its queue holds more than an outbox may", () => {
  let queued = OUTBOX_BYTES;
  const world = new World({ queuedBytes: () => queued });
  world.core.start();
  world.settle();
  expect(world.core.link.canSend()).toBe(false);
  world.accept();
  expect(world.core.link.canSend()).toBe(true);
  queued += 1;
  expect(world.core.link.canSend()).toBe(false);
});

it("logs in nowhere when a listener stops it as its link opens", () => {
  const world = new World();
  world.core.link.onState(({ state }) => {
    if (state === "authenticating") world.core.stop();
  });
  world.core.start();
  expect(() => world.settle()).not.toThrow();
  expect([world.link().messages, world.core.link.state]).toEqual([[], "stopped"]);
});

it("keeps its session token when another device took its place", () => {
  const world = new World().online();
  world.say(error("REPLACED"));
  world.untilConnected();
  expect(world.link().messages[0]).toMatchObject({ type: "auth", session_token: "sess_1" });
});

it("waits for nothing before it is started", () => {
  const { link } = new World().core;
  expect(link.status).toEqual({ state: "idle", code: null, advice: null, waitMs: null });
  expect(link.nextDeadline()).toBeNull();
  link.timeout(1_000_000);
  expect(link.state).toBe("idle");
});

it("tells the relay whether it was stopped, or gave the link up", () => {
  const told: unknown[] = [];
  for (const end of [
    (world: World) => world.core.stop(),
    (world: World) => world.say(error("REPLACED")),
  ]) {
    const world = new World().online();
    world.link().end.closed = (...args) => told.push(args);
    end(world);
    world.settle();
  }
  expect(told).toEqual([
    [1000, "stopped"],
    [4000, "no use"],
  ]);
});
