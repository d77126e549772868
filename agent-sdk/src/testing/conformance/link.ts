/** What every LinkPort must do, tested against a relay's end that the edge provides. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Link, LinkPort } from "../../ports.ts";

/** The other end of one link. */
export interface RelaySide {
  /** Messages received from the agent so far. */
  readonly received: readonly string[];
  /** The close code after the link ended, else null. */
  readonly closedWith: number | null;
  send(text: string): void;
  close(code: number, reason: string): void;
}

export interface LinksUnderTest {
  readonly port: LinkPort;
  readonly url: string;
  /** An address that refuses connections. */
  readonly deadUrl: string;
  /** Links that reached the relay, in order. */
  readonly relays: readonly RelaySide[];
  /** Advances the world until `done` is true. */
  until(done: () => boolean): Promise<void>;
  end(): Promise<void>;
}

interface Ends {
  readonly link: Link;
  readonly log: string[];
  readonly relay: RelaySide;
}

export const linkConformance = (name: string, make: () => Promise<LinksUnderTest>): void => {
  describe(`link conformance: ${name}`, () => {
    let world: LinksUnderTest;
    beforeEach(async () => {
      world = await make();
    });
    afterEach(() => world.end());

    const connect = (url: string): { link: Link; log: string[] } => {
      const log: string[] = [];
      let inside = true;
      const say = (line: string): void => {
        log.push(inside ? `${line} from inside connect` : line);
      };
      const link = world.port.connect(url, {
        opened: () => say("opened"),
        received: (text) => say(`received ${text}`),
        closed: (code) => say(`closed ${code}`),
      });
      inside = false;
      return { link, log };
    };

    const open = async (): Promise<Ends> => {
      const { link, log } = connect(world.url);
      await world.until(() => log.length > 0 && world.relays.length > 0);
      expect(log).toEqual(["opened"]);
      return { link, log, relay: world.relays[0] as RelaySide };
    };

    it("carries messages both ways, in order and whole", async () => {
      const { link, log, relay } = await open();
      const long = JSON.stringify({ p: "x".repeat(60000) });
      link.send("one");
      link.send(long);
      await world.until(() => relay.received.length === 2);
      expect(relay.received).toEqual(["one", long]);
      relay.send("a");
      relay.send(long);
      relay.send("b");
      await world.until(() => log.length === 4);
      expect(log).toEqual(["opened", "received a", `received ${long}`, "received b"]);
    });

    it("receives a message that the relay sends immediately", async () => {
      const { link, log, relay } = await open();
      relay.send("hello");
      await world.until(() => log.includes("received hello"));
      link.close(1000, "");
    });

    it("reports the relay's close once, with its code, and nothing afterwards", async () => {
      const { link, log, relay } = await open();
      relay.send("last words");
      relay.close(1012, "restart");
      await world.until(() => log.some((line) => line.startsWith("closed")));
      link.send("too late");
      link.close(1000, "too late");
      await world.until(() => relay.closedWith !== null);
      expect(log).toEqual(["opened", "received last words", "closed 1012"]);
      expect(relay.received).toEqual([]);
    });

    it("reports its own close once, and the relay learns the code", async () => {
      const { link, log, relay } = await open();
      link.close(4000, "enough");
      link.close(4000, "enough");
      link.send("too late");
      await world.until(() => relay.closedWith !== null && log.length > 1);
      expect(relay.closedWith).toBe(4000);
      expect(log.filter((line) => line.startsWith("closed"))).toHaveLength(1);
      expect(relay.received).toEqual([]);
    });

    it("reports an unreachable relay as closed, once, and never from inside connect", async () => {
      const { log } = connect(world.deadUrl);
      expect(log).toEqual([]);
      await world.until(() => log.length > 0);
      expect(log).toEqual(["closed 1006"]);
    });

    it("can be closed before it opens", async () => {
      const { link, log } = connect(world.url);
      link.close(4000, "changed my mind");
      await world.until(() => log.some((line) => line.startsWith("closed")));
      expect(log.filter((line) => line.startsWith("closed"))).toHaveLength(1);
      expect(log.some((line) => line.includes("inside"))).toBe(false);
    });
  });
};
