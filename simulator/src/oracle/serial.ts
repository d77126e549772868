/**
 * Of one bridged serial port: no byte comes twice or out of its place, and none is missing without
 * a word. Every byte is known by the opening of the port and its number there, in both directions.
 * It sees the device's side of the port and what programs write, get and are told.
 */
import type { Loss, RemotePort } from "@blindrelay/client-sdk/serial";
import { getOrMake } from "../base/maps.ts";

/** What a program wrote, until it is told of its loss. */
interface Written {
  readonly opening: string;
  readonly number: number;
  readonly byte: number;
  told: Loss["outcome"] | null;
  /** If the device does not have it, it was purged, or its program ended before. */
  isPurged: boolean;
  hasArrived: boolean;
}

const isOpen = ({ told, hasArrived }: Written): boolean => told === null && !hasArrived;

/** The numbers of both directions, as a program's end of the port has them. */
interface Numbers {
  readonly opening: string | null;
  readonly readAt: number;
  readonly sendAt: number;
  readonly sentTo: number;
  readonly kept: { readonly end: number };
}

type Violate = (what: string) => void;

export class SerialOracle {
  readonly violate: Violate;
  /** The newest opening, and what the device said in it; that of others stays. */
  opening = "";
  private readonly said = new Map<string, number[]>();
  private readonly written = new Map<string, Written[][]>();

  constructor(violate: Violate) {
    this.violate = violate;
  }

  /** The port was opened. */
  opened(opening: string): void {
    this.opening = opening;
    this.said.set(opening, []);
  }

  /** Before the port has them. */
  says(bytes: Uint8Array): void {
    const said = this.saidIn(this.opening);
    for (const byte of bytes) said.push(byte);
  }

  /** The device took these; `number` is that of the first, and `user` the claim that wrote them. */
  took(opening: string, user: string, number: number, bytes: Uint8Array): void {
    const written = this.writtenIn(opening, user);
    const before = written[number - 1]?.at(-1);
    if (before !== undefined && isOpen(before) && !before.isPurged) {
      this.violate(`byte ${number - 1} of ${user} is missing, and nothing was said`);
      return;
    }
    for (const [at, byte] of bytes.entries()) {
      // Of those that had this number, older ones were mostly purged.
      const found = written[number + at]?.findLast(
        (one) => one.byte === byte && !one.hasArrived && one.told !== "not sent",
      );
      if (found === undefined) {
        this.violate(`byte ${number + at} of ${user} is another, or comes again`);
        return;
      }
      found.hasArrived = true;
    }
  }

  saidIn(opening: string): number[] {
    return this.said.get(opening) ?? [];
  }

  /**
   * What a claim wrote, by number. Some numbers are given again, to bytes after others that were
   * told as lost.
   */
  writtenIn(opening: string, user: string): Written[][] {
    return getOrMake(this.written, `${opening} ${user}`, () => []);
  }
}

/** A program that reads, and perhaps writes. */
export class SerialUser {
  private readonly port: SerialOracle;
  private readonly claim: string;
  private readonly remote: () => RemotePort | null;
  private written: Written[] = [];
  private opening: string | null = null;
  private at = 0;
  /** Of these openings bytes may be missing without a word. */
  private readonly purgedIn = new Set<string>();

  /** `remote`: its end of the port, once something has come. */
  constructor(port: SerialOracle, claim: string, remote: () => RemotePort | null) {
    this.port = port;
    this.claim = claim;
    this.remote = remote;
  }

  /** It has had the port. */
  get isKnown(): boolean {
    return typeof this.numbers?.opening === "string";
  }

  /** It has what the device has said since the port was opened. */
  get hasAll(): boolean {
    const { opening, readAt } = this.numbers;
    const { port } = this;
    return opening === port.opening && readAt === port.saidIn(opening).length;
  }

  /** The number of the next byte from the device. */
  get readTo(): number {
    return this.numbers?.readAt ?? 0;
  }

  /** What should still arrive. */
  get open(): readonly Written[] {
    this.written = this.written.filter(isOpen);
    return this.written;
  }

  /** Before it writes them. */
  writes(bytes: Uint8Array): void {
    const { kept } = this.numbers;
    const opening = this.numbers.opening ?? "";
    const written = this.port.writtenIn(opening, this.claim);
    for (const [at, byte] of bytes.entries()) {
      const number = kept.end + at;
      const one = { opening, number, byte, told: null, isPurged: false, hasArrived: false };
      written[number] ??= [];
      written[number].push(one);
      this.written.push(one);
    }
  }

  /** Before it purges, and again once that is over: the port may have been opened meanwhile. */
  purging(read: boolean, write: boolean): void {
    const { sendAt, sentTo, opening } = this.numbers;
    const unsentAt = Math.max(sendAt, sentTo);
    if (write) {
      for (const one of this.open) {
        one.isPurged = true;
        // What was not sent leaves its number to the next byte.
        if (one.opening === opening && one.number >= unsentAt) one.told = "not sent";
      }
    }
    if (read && opening !== null) this.purgedIn.add(opening);
  }

  /** It ends: of what is under way, nobody can be told. */
  leaves(): void {
    for (const one of this.open) one.isPurged = true;
  }

  got(came: Uint8Array): void {
    const { readAt } = this.numbers;
    const opening = this.numbers.opening ?? "";
    const from = readAt - came.length;
    if (opening === this.opening) {
      if (this.isPurged ? from < this.at : from !== this.at) {
        this.violate(`bytes from ${from} come after byte ${this.at - 1}, and nothing was said`);
      }
    } else {
      // Of the first one, what came before is nobody's.
      const isMissing = this.opening !== null && !this.isPurged;
      if (isMissing && from !== 0 && from !== this.at) {
        this.violate(`the first bytes of another opening are from ${from}, and nothing was said`);
      }
      this.opening = opening;
    }
    const said = this.port.saidIn(opening);
    const wrong = came.findIndex((byte, at) => byte !== said[from + at]);
    if (wrong >= 0) this.violate(`byte ${from + wrong} is not what the device said there`);
    this.at = readAt;
  }

  lost({ direction, outcome, from, bytes }: Loss): void {
    if (from === null || bytes === null) {
      this.violate("a loss is told without its number");
      return;
    }
    const last = from + bytes;
    if (direction === "from the device") {
      // It is the beginning of another opening, or where this client was.
      if (this.opening === null) this.opening = this.numbers.opening;
      else if (!this.isPurged && from !== 0 && from !== this.at) {
        this.violate(`a loss from byte ${from} is told after byte ${this.at - 1}`);
      }
      this.at = last;
      return;
    }
    const opening = this.numbers.opening ?? "";
    const written = this.port.writtenIn(opening, this.claim);
    for (let number = from; number < last; number++) {
      const found = written[number]?.findLast(({ told }) => told === null);
      if (found === undefined) {
        this.violate(`byte ${number} is told as lost twice`);
        return;
      }
      if (outcome === "not sent" && found.hasArrived) {
        this.violate(`byte ${number} is told as not sent, and the device has it`);
      }
      found.told = outcome;
    }
  }

  private get isPurged(): boolean {
    const { opening } = this.numbers;
    return this.purgedIn.has(opening ?? "") || this.purgedIn.has(this.opening ?? "");
  }

  private get numbers(): Numbers {
    return this.remote() as unknown as Numbers;
  }

  private violate(what: string): void {
    this.port.violate(`${this.claim}: ${what}`);
  }
}
