import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { LinkEvents } from "../ports.ts";
import { OUTBOX_BYTES } from "../spec.ts";
import { PING_TEXT, PONG_TEXT } from "../wire/ping.ts";
import { type LoginAnswer, MovingLink, type MovingSide } from "./moving.ts";

beforeEach(() => void vi.useFakeTimers({ now: 0 }));
afterEach(() => void vi.useRealTimers());

const LEAVE_MS = 5_000;
const ANSWERS = ["accepted", "again", "failed", "refused"];

interface FakeLink {
  readonly events: LinkEvents;
  readonly sent: string[];
  closed: string | null;
}

const world = (given: Partial<MovingSide> = {}) => {
  const links: FakeLink[] = [];
  const told: string[] = [];
  const side: MovingSide = {
    takesOver: false,
    login: (next) => {
      told.push("login");
      next.send("auth");
    },
    answered: (text) => (ANSWERS.includes(text) ? (text as LoginAnswer) : null),
    moving: () => told.push("moving"),
    isDrained: () => true,
    moved: (held) => {
      told.push(`moved ${held}`);
      return LEAVE_MS;
    },
    settled: () => told.push("settled"),
    left: () => told.push("left"),
    opened: () => told.push("opened"),
    received: (text, early) => told.push(`${early ? "early " : ""}${text}`),
    receivedLeft: (text) => told.push(`left link: ${text}`),
    closed: (_link, code, reason) => told.push(`closed ${code} ${reason}`),
    ...given,
  };
  const timer = {
    now: () => Date.now(),
    set: (ms: number, fn: () => void) => setTimeout(fn, ms),
    clear: (handle: unknown) => clearTimeout(handle as number),
  };
  const logged: unknown[] = [];
  const link = new MovingLink(
    "ws://relay/wss",
    {
      link: {
        connect: (url, events) => {
          const one: FakeLink = { events, sent: [], closed: null };
          links.push(one);
          if (url !== "ws://relay/wss") throw new Error(url);
          return {
            send: (text) => one.sent.push(text),
            close: (code, reason) => {
              one.closed = `${code} ${reason}`;
            },
            queuedBytes: () => 7,
          };
        },
      },
      timer,
      log: (...line) => logged.push(line),
    },
    side,
  );
  const at = (n: number): FakeLink => links[n] as FakeLink;
  return {
    link,
    links,
    logged,
    at,
    /** What the side was told since this was last asked. */
    told: () => told.splice(0),
    open: (n: number) => at(n).events.opened(),
    say: (n: number, text: string) => at(n).events.received(text),
    end: (n: number, code = 1006, reason = "gone") => at(n).events.closed(code, reason),
    pass: (ms: number) => vi.advanceTimersByTime(ms),
  };
};

/** With a second link that is open and logs in. */
const asking = (given: Partial<MovingSide> = {}) => {
  const all = world(given);
  all.open(0);
  all.link.moveIn(10);
  all.pass(10);
  all.open(1);
  all.told();
  return all;
};

/** A client's, whose second link has logged in while an answer is awaited on the first one. */
const draining = () => {
  const state = { isDrained: false };
  const all = asking({ isDrained: () => state.isDrained });
  all.say(1, "accepted");
  all.told();
  return { ...all, state };
};

const agent = { takesOver: true };

describe("a link that does not move", () => {
  it("is the link itself", () => {
    const { link, at, told, open, say, end } = world();
    open(0);
    link.send("a");
    say(0, "b");
    expect([link.isMoving, link.isSettled, link.queuedBytes()]).toEqual([false, true, 7]);
    end(0, 4001, "why");
    expect([at(0).sent, told()]).toEqual([["a"], ["opened", "b", "closed 4001 why"]]);
    expect(link.moveIn(0)).toBe(false);
  });

  it("once closed tells of its end, and of nothing else", () => {
    const { link, at, told, open, say, end, pass } = world();
    link.close(1000, "stop");
    open(0);
    say(0, "late");
    expect([at(0).closed, told()]).toEqual(["1000 stop", []]);
    end(0, 1000, "stop");
    expect(told()).toEqual(["closed 1000 stop"]);
    expect(link.moveIn(0)).toBe(false);
    pass(10_000);
    expect(told()).toEqual([]);
  });
});

describe("the next link", () => {
  it("is dialled after the delay, and one only, while the current one stays in use", () => {
    const { link, links, at, told, open, say, pass } = world();
    open(0);
    expect([link.moveIn(100), link.moveIn(0), link.isSettled]).toEqual([true, false, false]);
    pass(99);
    expect(links).toHaveLength(1);
    pass(1);
    expect(links).toHaveLength(2);
    open(1);
    expect([told(), at(1).sent]).toEqual([["opened", "login"], ["auth"]]);
    link.send("a");
    say(0, "b");
    expect([at(0).sent, told(), link.isMoving]).toEqual([["a"], ["b"], false]);
  });

  it("is pinged while it logs in, and what means nothing there is ignored", () => {
    const { at, told, say } = asking();
    say(1, PING_TEXT);
    say(1, "news");
    expect([at(1).sent, told()]).toEqual([["auth", PONG_TEXT], []]);
  });

  it("logs in once more if it is asked to", () => {
    const { at, told, say } = asking();
    say(1, "again");
    expect([at(1).sent, told()]).toEqual([["auth", "auth"], ["login"]]);
  });

  it.each([
    ["ends", ({ end }: ReturnType<typeof world>) => end(1)],
    ["fails", ({ say }: ReturnType<typeof world>) => say(1, "failed")],
    ["is silent for 30 s", ({ pass }: ReturnType<typeof world>) => pass(30_000)],
  ])("that %s gives way to another one, after 1, 2, 4 s and so on", (_how, fail) => {
    const tries: number[] = [];
    const all = asking({ retries: (n) => tries.push(n) < 4 });
    const { link, links, at, told, open, pass } = all;
    fail(all);
    expect([at(1).closed, told(), link.isSettled]).toEqual(["1000 not needed", ["settled"], false]);
    for (const [n, ms] of [1_000, 2_000, 4_000].entries()) {
      pass(ms - 1);
      expect(links).toHaveLength(n + 2);
      pass(1);
      expect(links).toHaveLength(n + 3);
      open(n + 2);
      links.splice(1, 0, ...links.splice(n + 2, 1));
      fail(all);
    }
    expect([tries, link.isSettled]).toEqual([[1, 2, 3, 4], true]);
    pass(100_000);
    expect(links).toHaveLength(5);
  });

  it("that does not open within 30 s gives way to another one", () => {
    const { link, links, at, told, open, pass } = world();
    link.moveIn(0);
    pass(0);
    pass(29_999);
    expect(at(1).closed).toBe(null);
    pass(1);
    expect([at(1).closed, links.length]).toEqual(["1000 not needed", 2]);
    pass(1_000);
    expect([links.length, told()]).toEqual([3, ["settled"]]);
    // Late, because to close takes its time.
    open(1);
    expect(told()).toEqual([]);
  });

  it("that is refused is the last one, until somebody asks for another", () => {
    const { link, links, at, say, end, pass } = asking();
    say(1, "refused");
    end(1);
    pass(100_000);
    expect([at(1).closed, links.length, link.isSettled]).toEqual(["1000 not needed", 2, true]);
    expect(link.moveIn(0)).toBe(true);
  });

  it("is not wanted any more if the current one ends before it opens", () => {
    const { link, links, at, told, open, say, end, pass } = world();
    link.moveIn(5);
    pass(5);
    end(0, 1012, "restart");
    expect([at(1).closed, told()]).toEqual(["1000 not needed", ["closed 1012 restart"]]);
    open(1);
    say(1, "accepted");
    end(1);
    pass(100_000);
    expect([links.length, told()]).toEqual([2, []]);
  });

  it("is not dialled if the current one ends or is closed before", () => {
    for (const stop of ["end", "close"]) {
      const { link, links, end, pass } = world();
      link.moveIn(5);
      if (stop === "end") end(0);
      else link.close(1000, "stop");
      pass(100_000);
      expect(links).toHaveLength(1);
    }
  });
});

describe("an agent's link", () => {
  it("holds back what is sent from the login on, and sends it first on the next link", () => {
    const { link, at, told, logged, say, pass } = asking(agent);
    link.send("a");
    link.send("bc");
    link.send(PONG_TEXT);
    expect([at(0).sent, link.isMoving, link.queuedBytes()]).toEqual([[PONG_TEXT], true, 10]);
    pass(250);
    say(1, "accepted");
    link.send("d");
    expect([at(1).sent, told()]).toEqual([
      ["auth", "a", "bc", "d"],
      ["moved 2", "settled"],
    ]);
    expect([link.isMoving, link.isSettled, link.queuedBytes()]).toEqual([false, false, 7]);
    expect(logged).toEqual([["info", "moved to another link", { heldMs: 250 }]]);
  });

  it("tells that it moves before it logs in", () => {
    const { told, open, link, pass } = world(agent);
    link.moveIn(0);
    pass(0);
    open(1);
    expect(told()).toEqual(["moving", "login"]);
  });

  it("receives on the next link once the one before it has ended", () => {
    const { link, at, told, say, end } = asking(agent);
    say(1, "accepted");
    told();
    say(1, "second");
    say(0, "first");
    say(0, PING_TEXT);
    say(1, "third");
    expect([told(), at(0).sent]).toEqual([["left link: first"], [PONG_TEXT]]);
    end(0);
    say(1, "fourth");
    expect([told(), link.isSettled]).toEqual([["left", "second", "third", "fourth"], true]);
    say(0, "too late");
    expect(told()).toEqual([]);
  });

  it("waits for that end as long as the side says, and then closes it", () => {
    const { at, told, say, pass } = asking(agent);
    say(1, "accepted");
    say(1, "second");
    told();
    pass(LEAVE_MS - 1);
    expect([at(0).closed, told()]).toEqual([null, []]);
    pass(1);
    expect([at(0).closed, told()]).toEqual(["1000 moved", ["left", "second"]]);
    say(0, "late");
    expect(told()).toEqual([]);
  });

  it("waits no longer once more is held back than a connection may queue", () => {
    const { at, told, say } = asking(agent);
    say(1, "accepted");
    told();
    say(1, "x".repeat(OUTBOX_BYTES));
    expect(told()).toEqual([]);
    say(1, "y");
    expect([at(0).closed, told().map((text) => text.length)]).toEqual([
      "1000 moved",
      ["left".length, OUTBOX_BYTES, 1],
    ]);
  });

  it("delivers what it held back before it tells of its end", () => {
    const { at, told, say, end } = asking(agent);
    say(1, "accepted");
    say(1, "second");
    told();
    end(1, 4001, "why");
    expect([at(0).closed, told()]).toEqual(["1000 moved", ["left", "second", "closed 4001 why"]]);
  });

  it("is not left because a link that failed before has ended only now", () => {
    const { at, told, open, say, end, pass } = asking(agent);
    say(1, "failed");
    pass(1_000);
    open(2);
    say(2, "accepted");
    told();
    end(1);
    expect([at(0).closed, told()]).toEqual([null, []]);
  });

  it("needs no more of its side than it asks of every one", () => {
    const { at, told, say, end } = asking({
      takesOver: true,
      isDrained: undefined,
      settled: undefined,
      left: undefined,
    } as unknown as MovingSide);
    say(1, "accepted");
    say(1, "second");
    end(0);
    expect([at(1).sent, told()]).toEqual([["auth"], ["moved 0", "second"]]);
  });

  it("sends what was held back on the link that it stays on", () => {
    const { link, at, told, say } = asking(agent);
    link.send("a");
    say(1, "refused");
    link.send("b");
    expect([at(0).sent, told(), link.queuedBytes()]).toEqual([["a", "b"], ["settled"], 7]);
  });

  it("that ends during the login moves without a link to leave", () => {
    const { link, at, told, say, end, pass } = asking(agent);
    link.send("a");
    end(0, 4002, "taken over");
    say(1, "accepted");
    say(1, "b");
    expect([at(1).sent, told()]).toEqual([
      ["auth", "a"],
      ["moved 1", "settled", "b"],
    ]);
    expect(link.isSettled).toBe(true);
    pass(LEAVE_MS * 2);
    expect(told()).toEqual([]);
  });
});

describe("a client's link", () => {
  it("uses the first link until all answers have come, and looks every 100 ms", () => {
    const { link, at, told, say, pass, state } = draining();
    link.send("a");
    say(1, "second");
    say(0, "first");
    expect([at(0).sent, link.isMoving, told()]).toEqual([[], true, ["first"]]);
    pass(300);
    state.isDrained = true;
    pass(99);
    expect(told()).toEqual([]);
    pass(1);
    expect([at(1).sent, told()]).toEqual([
      ["auth", "a"],
      ["moved 1", "settled", "early second"],
    ]);
    say(0, "late");
    say(1, "third");
    expect(told()).toEqual(["left link: late", "early third"]);
    pass(LEAVE_MS);
    say(1, "fourth");
    expect([at(0).closed, told()]).toEqual(["1000 moved", ["left", "fourth"]]);
  });

  it("does not look before what was sent can have arrived", () => {
    const { at, told, say, pass, logged } = asking();
    pass(30);
    say(1, "accepted");
    expect(told()).toEqual(["moving"]);
    pass(99);
    expect(told()).toEqual([]);
    pass(1);
    expect([told(), at(0).closed]).toEqual([["moved 0", "settled"], null]);
    expect(logged).toEqual([["info", "moved to another link", { heldMs: 130 }]]);
  });

  it("does not wait for answers any longer than 2 s", () => {
    const { told, pass } = draining();
    pass(1_999);
    expect(told()).toEqual([]);
    pass(1);
    expect(told()).toEqual(["moved 0", "settled"]);
  });

  it("moves at once when it is told to, or the first link ends, while it waits for answers", () => {
    const one = draining();
    one.link.move();
    expect(one.told()).toEqual(["moved 0", "settled"]);
    one.pass(LEAVE_MS - 1);
    expect(one.told()).toEqual([]);
    one.pass(1);
    expect(one.told()).toEqual(["left"]);
    const other = draining();
    other.say(1, "second");
    other.end(0);
    expect(other.told()).toEqual(["moved 0", "settled", "second"]);
    expect([other.link.isSettled, vi.getTimerCount()]).toEqual([true, 0]);
  });

  it("moves to no link that has not logged in", () => {
    const { link, told, at } = asking();
    link.move();
    link.send("a");
    expect([told(), at(0).sent]).toEqual([[], ["a"]]);
  });

  it("moves at once if more is held back than a connection may queue", () => {
    const { told, say } = draining();
    say(1, "x".repeat(OUTBOX_BYTES + 1));
    expect(told().map((text) => text.slice(0, 8))).toEqual([
      "moved 0",
      "settled",
      "early xx",
      "left",
    ]);
  });

  it("whose first link ends during the login holds back what is sent, and moves", () => {
    const { link, at, told, say, end } = asking();
    end(0, 4002, "expired");
    link.send("a");
    expect([at(0).sent, told(), link.isMoving]).toEqual([[], ["moving"], true]);
    say(1, "accepted");
    expect([at(1).sent, told()]).toEqual([
      ["auth", "a"],
      ["moved 1", "settled"],
    ]);
  });

  it.each(["refused", "failed"])(
    "whose first link ends during a login that is %s has ended as that one did",
    (answer) => {
      const { links, told, say, end, pass } = asking();
      end(0, 4002, "expired");
      told();
      say(1, answer);
      expect(told()).toEqual(["closed 4002 expired"]);
      pass(100_000);
      expect([links.length, told()]).toEqual([2, []]);
    },
  );

  it("closed after its first link ended tells of that end a moment later", () => {
    const { link, at, told, end, pass } = asking();
    end(0, 4002, "expired");
    told();
    link.close(1000, "stop");
    expect([at(0).closed, at(1).closed, told()]).toEqual([null, "1000 not needed", []]);
    pass(0);
    expect(told()).toEqual(["closed 4002 expired"]);
  });

  it("closed between two links closes both, and delivers nothing of what it held", () => {
    const { link, at, told, say } = draining();
    say(1, "held");
    link.close(1000, "stop");
    expect([at(0).closed, at(1).closed]).toEqual(["1000 stop", "1000 not needed"]);
    say(0, "late");
    expect(told()).toEqual([]);
    const other = asking(agent);
    other.say(1, "accepted");
    other.say(1, "held");
    other.told();
    other.link.close(1000, "stop");
    expect([other.at(0).closed, other.at(1).closed]).toEqual(["1000 moved", "1000 stop"]);
    expect(other.told()).toEqual(["left"]);
  });

  it("may move again, and leaves the link before the last one for good before it dials", () => {
    const { link, links, at, told, open, say, pass } = asking();
    say(1, "accepted");
    link.send("before");
    pass(100);
    told();
    expect(link.moveIn(LEAVE_MS * 2)).toBe(true);
    say(0, "late");
    pass(LEAVE_MS * 2 - 1);
    expect([at(0).closed, told()]).toEqual([null, ["left link: late"]]);
    pass(1);
    expect([links.length, at(0).closed, told()]).toEqual([3, "1000 moved", ["left"]]);
    open(2);
    say(2, "accepted");
    link.send("a");
    pass(100);
    expect(at(2).sent).toEqual(["auth", "a"]);
  });

  it("dials no more if its side closes it as it leaves the one before", () => {
    const all = asking({ left: () => all.link.close(1000, "stop") });
    all.say(1, "accepted");
    all.pass(100);
    all.link.moveIn(10);
    all.pass(100_000);
    expect(all.links).toHaveLength(2);
  });
});
