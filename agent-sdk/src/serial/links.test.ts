/**
 * Both ends of a serial line in virtual time: the device's LinkPort, the bridge's carrier, a relay
 * in memory behind it, and a line that loses and inserts bytes on request.
 */
import { PONG_TEXT } from "@blindrelay/protocol/wire";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ManualTimer, memoryNetwork, seededRandom } from "../memory/index.ts";
import type { LinkEvents } from "../ports.ts";
import { linkConformance, type RelaySide } from "../testing/conformance/index.ts";
import { SerialCarrier } from "./carrier.ts";
import { encodeFrame, plainChecksum } from "./frames.ts";
import { SerialLinks } from "./links.ts";
import { FrameReader } from "./reader.ts";
import {
  encodeHello,
  encodeLink,
  FRAME_HELLO,
  FRAME_OPEN,
  FRAME_OPENED,
  FRAME_TEXT,
  maxBody,
  ROLE_BRIDGE,
} from "./wire.ts";

type Damage = (bytes: Uint8Array) => Uint8Array;
const UNHARMED: Damage = (bytes) => bytes;

interface Relay extends RelaySide {
  paused: boolean;
}

class Line {
  readonly timer = new ManualTimer();
  readonly relays: Relay[] = [];
  readonly logs: string[] = [];
  relayIsUp = true;
  relayQueue = 0;
  carrierReady = true;
  toDevice: Damage = UNHARMED;
  toBridge: Damage = UNHARMED;
  maxMessage = 65536;
  links: SerialLinks;
  /** The device's reader of its line. */
  declare reader: FrameReader;
  carrier: SerialCarrier;
  private seed = 1;

  constructor(maxMessage = 65536) {
    this.maxMessage = maxMessage;
    this.links = this.device();
    this.carrier = this.bridge();
  }

  /** Starts a device. */
  device(): SerialLinks {
    const { timer, maxMessage } = this;
    const links = new SerialLinks({
      write: (bytes) => {
        const damaged = this.toBridge(bytes.slice());
        timer.set(1, () => this.carrier.receive(damaged));
      },
      timer,
      life: this.seed++,
      checksum: plainChecksum,
      maxMessage,
      window: maxMessage * 2,
    });
    this.links = links;
    this.reader = new FrameReader(maxBody(maxMessage), plainChecksum, (type, body) =>
      links.receiveFrame(type, body),
    );
    return links;
  }

  /** Starts a bridge. */
  bridge(): SerialCarrier {
    const { timer } = this;
    const network = memoryNetwork({
      timer,
      accept: (end) => {
        if (!this.relayIsUp) return false;
        const received: string[] = [];
        const relay: Relay = {
          received,
          closedWith: null,
          paused: false,
          send: (text) => end.send(text),
          close: (code, reason) => end.close(code, reason),
        };
        end.received = (text) => received.push(text);
        end.closed = (code) => Object.assign(relay, { closedWith: code });
        this.relays.push(relay);
        return true;
      },
    });
    const carrier = new SerialCarrier({
      write: (bytes) => {
        const damaged = this.toDevice(bytes.slice());
        timer.set(1, () => this.reader.receive(damaged));
      },
      ready: () => this.carrierReady,
      connect: (events) => {
        const link = network.connect("wss://relay.example/wss", events);
        const index = this.relays.length;
        const pause = (paused: boolean) => Object.assign(this.relays[index] as Relay, { paused });
        return {
          ...link,
          queuedBytes: () => this.relayQueue,
          pause: () => pause(true),
          resume: () => pause(false),
        };
      },
      timer,
      random: seededRandom(100 + this.seed++),
      checksum: plainChecksum,
      log: (level, message) => this.logs.push(`${level}: ${message}`),
      maxMessage: 65536,
      window: 131072,
    });
    this.carrier = carrier;
    return carrier;
  }

  connect(): { link: ReturnType<SerialLinks["connect"]>; log: string[] } {
    const log: string[] = [];
    const events: LinkEvents = {
      opened: () => log.push("opened"),
      received: (text) => log.push(text),
      closed: (code, reason) => log.push(`closed ${code} ${reason}`),
    };
    return { link: this.links.connect("ignored", events), log };
  }

  relay(): Relay {
    return this.relays.at(-1) as Relay;
  }
}

linkConformance("serial line", async () => {
  const line = new Line();
  // The bridge uses its own address, so an unreachable relay is one that is down.
  const connect = line.links.connect.bind(line.links);
  line.links.connect = (url, events) => {
    line.relayIsUp = !url.includes("dead");
    return connect(url, events);
  };
  return {
    port: line.links,
    url: "serial",
    deadUrl: "dead",
    relays: line.relays,
    until: async (done) => {
      for (let i = 0; i < 20_000 && !done(); i++) line.timer.advance(1);
    },
    end: async () => line.carrier.end("the test is over"),
  };
});

/** Loses whole frames of a type, the first `count` of them. */
const losing = (type: number, count: number): Damage => {
  let left = count;
  return (bytes) => {
    let hit = false;
    new FrameReader(70000, plainChecksum, (found) => {
      hit = found === type;
    }).receive(bytes);
    if (!hit || left === 0) return bytes;
    left--;
    return new Uint8Array(0);
  };
};

describe("a device behind a serial line", () => {
  afterEach(() => vi.restoreAllMocks());

  it("connects, whichever end starts first, and despite a console's output", () => {
    const line = new Line();
    const { log } = line.connect();
    line.carrier.receive(Uint8Array.from(Buffer.from(" ____  \r\n|  __| Espruino 2v29\r\n>")));
    line.timer.advance(100);
    expect(log).toEqual(["opened"]);
    expect(line.carrier.garbage()).toBeLessThanOrEqual(1);
  });

  it.each([
    ["the greeting", "toDevice", FRAME_HELLO, 2],
    ["the device's greeting", "toBridge", FRAME_HELLO, 2],
    ["the request", "toBridge", 2, 1],
    ["its answer", "toDevice", FRAME_OPENED, 1],
  ] as const)("connects even if %s is lost", (_, way, type, count) => {
    const line = new Line();
    line[way] = losing(type, count);
    const { log } = line.connect();
    line.timer.advance(8000);
    expect(log).toEqual(["opened"]);
  });

  it("continues after lost texts, and recovers their credit", () => {
    const line = new Line(2000);
    const { log, link } = line.connect();
    line.timer.advance(100);
    line.toDevice = losing(FRAME_TEXT, 3);
    line.toBridge = losing(FRAME_TEXT, 90);
    for (let i = 0; i < 300; i++) {
      line.relay().send(`${i} ${"x".repeat(1500)}`);
      link.send(`${i} ${"y".repeat(1500)}`);
      line.timer.advance(50);
    }
    line.timer.advance(60_000);
    expect(log.slice(1)).toHaveLength(297);
    expect(line.relay().received).toHaveLength(210);
    expect(line.carrier.counters.lostBytes).toBeGreaterThan(90 * 1500);
  });

  it("learns that the relay closed its link", () => {
    const line = new Line();
    const { log } = line.connect();
    line.timer.advance(100);
    line.relay().close(1012, "restart");
    line.timer.advance(100);
    expect(log.at(-1)).toBe("closed 1012 restart");
  });

  it("is greeted without a Ctrl-C, which its console would obey during boot", () => {
    const greetings: number[] = [];
    const line = new Line();
    for (let starts = 0; starts < 100; starts++) {
      line.toDevice = (bytes) => {
        greetings.push(...bytes);
        return new Uint8Array();
      };
      line.bridge();
    }
    expect(greetings.length).toBeGreaterThan(2000);
    expect(greetings).not.toContain(3);
  });

  it("learns that the bridge restarted, and the relay learns that the device did", () => {
    const line = new Line();
    const first = line.connect();
    line.timer.advance(100);
    line.carrier.end("the port is gone");
    line.timer.advance(100);
    expect(line.relays[0]?.closedWith).not.toBeNull();
    line.bridge();
    line.timer.advance(100);
    expect(first.log.at(-1)).toBe("closed 1006 the bridge restarted");
    const second = line.connect();
    line.timer.advance(100);
    expect(second.log).toEqual(["opened"]);
    line.device();
    line.connect();
    line.timer.advance(100);
    expect(line.relays[1]?.closedWith).not.toBeNull();
    expect(line.relays[2]?.closedWith).toBeNull();
  });

  // Regression: on boards that draw the same random bytes after every reset, the bridge continued
  // the old link.
  it("is not mistaken for its previous life after a restart", () => {
    const line = new Line();
    line.connect();
    line.timer.advance(100);
    line.device();
    line.connect();
    line.timer.advance(100);
    expect(line.relays.map(({ closedWith }) => closedWith === null)).toEqual([false, true]);
  });

  it("does not connect to a bridge of another version, and reports it", () => {
    const line = new Line();
    line.carrier.end("replaced");
    const { log } = line.connect();
    const sent: number[] = [];
    line.toBridge = (bytes) => {
      sent.push(bytes.length);
      return bytes;
    };
    const hello = {
      version: 9,
      role: ROLE_BRIDGE,
      wantsAnswer: true,
      life: 1,
      maxMessage: 9,
      window: 9,
    };
    line.reader.receive(encodeFrame(FRAME_HELLO, encodeHello(hello), plainChecksum));
    line.timer.advance(10);
    expect(sent.length).toBeGreaterThan(0);
    expect(log).toEqual(["closed 1008 the bridge uses version 9"]);
    const device = { ...hello, role: 1 };
    const fresh = new Line();
    for (let i = 0; i < 3; i++) {
      fresh.carrier.receive(encodeFrame(FRAME_HELLO, encodeHello(device), plainChecksum));
    }
    expect(fresh.logs).toEqual(["error: the device uses another version of the serial framing"]);
  });

  it("receives no more than its window, and the bridge stops reading from the relay", () => {
    const line = new Line(4000);
    const { log } = line.connect();
    line.timer.advance(100);
    // The device hangs: it sends nothing.
    line.toBridge = () => new Uint8Array(0);
    let sent = 0;
    while (!line.relay().paused && sent < 1000) {
      line.relay().send(`${sent++} ${"x".repeat(3900)}`);
      line.timer.advance(10);
    }
    expect(sent).toBeLessThan(80);
    expect(line.carrier.held()).toBeLessThan(300_000);
    // Two messages fit into the window.
    expect(log).toHaveLength(1 + 2);
    line.toBridge = UNHARMED;
    line.timer.advance(60_000);
    expect(line.relay().paused).toBe(false);
    expect(log).toHaveLength(1 + sent);
  });

  it("has the bridge stop reading empty texts, too, of which a relay may send any number", () => {
    const line = new Line(4000);
    line.connect();
    line.timer.advance(100);
    line.carrierReady = false;
    for (let sent = 0; sent < 5_000; sent++) line.relay().send("");
    line.timer.advance(10);
    expect(line.relay().paused).toBe(true);
  });

  it("is asked for credit that was lost, also right after a link that was", () => {
    const line = new Line(1000);
    const first = line.connect();
    line.timer.advance(100);
    const sendMore = (): void => {
      line.toBridge = () => new Uint8Array(0);
      for (let n = 1; n <= 3; n++) line.relay().send(`${n}${"x".repeat(900)}`);
      line.timer.advance(100);
      line.toBridge = UNHARMED;
    };
    sendMore();
    expect(first.log).toHaveLength(1 + 2);
    first.link.close(1000, "");
    const { log } = line.connect();
    line.timer.advance(100);
    sendMore();
    expect(log).toHaveLength(1 + 2);
    line.timer.advance(5000);
    expect(log).toHaveLength(1 + 3);
  });

  it("gets credit as soon as the relay accepts, also right after a link that waited", () => {
    const line = new Line();
    const sendMore = (link: ReturnType<SerialLinks["connect"]>): void => {
      line.relayQueue = 10_000_000;
      for (let i = 0; i < 4; i++) link.send("y".repeat(40_000));
    };
    const first = line.connect();
    line.timer.advance(100);
    sendMore(first.link);
    line.timer.advance(1);
    first.link.close(1000, "");
    const { link } = line.connect();
    line.timer.advance(5);
    sendMore(link);
    line.timer.advance(5);
    line.relayQueue = 0;
    line.timer.advance(5000);
    expect(line.relay().received).toHaveLength(4);
  });

  it("waits for a line that accepts nothing", () => {
    const line = new Line();
    const { log } = line.connect();
    line.timer.advance(100);
    line.carrierReady = false;
    line.relay().send("later");
    line.timer.advance(1000);
    expect(log).toEqual(["opened"]);
    line.carrierReady = true;
    line.carrier.writable();
    line.timer.advance(10);
    expect(log).toEqual(["opened", "later"]);
  });

  it("queues one pong for any number of pings while it has no credit", () => {
    const line = new Line();
    const { link } = line.connect();
    line.timer.advance(100);
    line.toBridge = () => new Uint8Array(0);
    while (link.queuedBytes?.() === 0) link.send("x".repeat(60_000));
    const before = link.queuedBytes?.() as number;
    for (let n = 0; n < 1000; n++) link.send(PONG_TEXT);
    expect(link.queuedBytes?.()).toBe(before + PONG_TEXT.length);
  });

  it("gets no credit while the relay accepts nothing", () => {
    const line = new Line();
    const { link } = line.connect();
    line.timer.advance(100);
    line.relayQueue = 10_000_000;
    for (let i = 0; i < 10; i++) link.send("y".repeat(40_000));
    line.timer.advance(5000);
    expect(line.relay().received).toHaveLength(3);
    expect(link.queuedBytes?.()).toBe(280_000);
    expect(line.carrier.held()).toBe(120_000);
    line.relayQueue = 0;
    line.timer.advance(5000);
    expect(line.relay().received).toHaveLength(10);
  });

  it("never receives a message longer than it accepts", () => {
    const line = new Line(1000);
    const { log } = line.connect();
    line.timer.advance(100);
    line.relay().send("x".repeat(1001));
    line.relay().send("short");
    line.timer.advance(100);
    expect(log).toEqual(["opened", "short"]);
    expect(line.carrier.counters.tooLong).toBe(1);
  });

  it("that asks for one link after another without end gets few", () => {
    const line = new Line();
    line.connect();
    line.timer.advance(100);
    for (let id = 100; id < 5_100; id++) {
      line.carrier.receive(encodeFrame(FRAME_OPEN, encodeLink(id), plainChecksum));
      line.timer.advance(1);
    }
    expect(line.relays.length).toBeLessThan(30);
    line.timer.advance(2_000);
    const { log } = line.connect();
    line.timer.advance(2_000);
    expect(log).toEqual(["opened"]);
  });
});
