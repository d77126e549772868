/**
 * A browser's Web Serial whose only port leads to a board of the test: the page's
 * `navigator.serial` is replaced before its code runs, and bytes cross between page and test as
 * texts.
 */
import { Duplex } from "node:stream";
import type { Page } from "playwright-core";

/** A double, or a real engine. */
export interface Device {
  connect(stream: Duplex): void;
}

/** Runs in the page. */
const replaceSerial = (): void => {
  const page = globalThis as unknown as {
    serialOpen(): Promise<string>;
    serialClose(): Promise<void>;
    serialWrite(text: string): Promise<boolean>;
    serialHear(text: string | null): void;
    serialChooses: boolean;
  };
  const LOST = "The device has been lost.";
  let input: ReadableStreamDefaultController<Uint8Array> | null = null;
  page.serialChooses = true;
  page.serialHear = (text) => {
    if (text !== null) input?.enqueue(Uint8Array.from(text, (byte) => byte.charCodeAt(0)));
    else {
      port.readable = null;
      input?.error(new DOMException(LOST, "NetworkError"));
      input = null;
    }
  };
  const port = {
    readable: null as ReadableStream<Uint8Array> | null,
    writable: null as WritableStream<Uint8Array> | null,
    async open(): Promise<void> {
      if (port.readable !== null)
        throw new DOMException("The port is already open.", "InvalidStateError");
      const problem = await page.serialOpen();
      if (problem !== "") throw new DOMException(problem, "NetworkError");
      port.readable = new ReadableStream({
        start: (controller) => {
          input = controller;
        },
      });
      port.writable = new WritableStream({
        write: async (bytes) => {
          if (!(await page.serialWrite(String.fromCharCode(...bytes))))
            throw new DOMException(LOST, "NetworkError");
        },
      });
    },
    async close(): Promise<void> {
      if (port.readable?.locked || port.writable?.locked) throw new TypeError("a locked stream");
      port.readable = null;
      await page.serialClose();
    },
  };
  const serial = {
    requestPort: async () => {
      if (page.serialChooses) return port;
      throw new DOMException("No port selected by the user.", "NotFoundError");
    },
  };
  Object.defineProperty(Navigator.prototype, "serial", { configurable: true, get: () => serial });
};

/** What is at the page's port; a test plugs boards in and pulls cables. */
export class WebPort {
  /** Bytes that have passed, in both directions. */
  passed = 0;
  /** The cable is pulled after this many. */
  pullsAfter = Number.POSITIVE_INFINITY;
  /** How the port fails to open; "" if it opens. */
  problem = "";
  readonly #page: Page;
  #device: Device | null = null;
  #line: Duplex | null = null;
  #isOpen = false;
  /** What the page has yet to hear, in order. */
  #hearing: Promise<unknown> = Promise.resolve();

  private constructor(page: Page) {
    this.#page = page;
  }

  /** Before the page is loaded. */
  static async on(page: Page): Promise<WebPort> {
    const port = new WebPort(page);
    await page.exposeFunction("serialOpen", () => {
      if (port.problem === "") port.#connect();
      return port.problem;
    });
    await page.exposeFunction("serialClose", () => port.#disconnect());
    await page.exposeFunction("serialWrite", (text: string) => port.#take(text));
    await page.addInitScript(replaceSerial);
    return port;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  plug(device: Device): void {
    this.#device = device;
    this.passed = 0;
    this.pullsAfter = Number.POSITIVE_INFINITY;
  }

  pull(): void {
    if (!this.#isOpen) return;
    this.#disconnect();
    this.#tell(null);
  }

  #connect(): void {
    this.#isOpen = true;
    this.#line = new Duplex({
      read: () => undefined,
      write: (bytes: Buffer, _encoding, done) => {
        const text = this.#count(bytes.toString("latin1"));
        if (text !== "") this.#tell(text);
        this.#pullIfDue();
        done();
      },
    });
    this.#device?.connect(this.#line);
  }

  #disconnect(): void {
    this.#isOpen = false;
    this.#line?.destroy();
    this.#line = null;
  }

  #take(text: string): boolean {
    if (!this.#isOpen) return false;
    const rest = this.#count(text);
    this.#line?.emit("data", Buffer.from(rest, "latin1"));
    this.#pullIfDue();
    return this.#isOpen;
  }

  /** As much of it as passes. */
  #count(text: string): string {
    if (!this.#isOpen) return "";
    const rest = text.slice(0, Math.max(0, this.pullsAfter - this.passed));
    this.passed += text.length;
    return rest;
  }

  #pullIfDue(): void {
    if (this.passed >= this.pullsAfter) this.pull();
  }

  #tell(text: string | null): void {
    const hear = (said: string | null) =>
      (globalThis as unknown as { serialHear(text: string | null): void }).serialHear(said);
    this.#hearing = this.#hearing
      .then(() => this.#page.evaluate(hear, text))
      .catch(() => undefined); // the page is closed
  }
}

/** The user closes the browser's list of ports from now on. */
export const chooseNoPort = (page: Page): Promise<void> =>
  page.evaluate(() => {
    (globalThis as unknown as { serialChooses: boolean }).serialChooses = false;
  });
