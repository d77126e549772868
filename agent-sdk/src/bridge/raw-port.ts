/**
 * A raw port and those who use it (section 2, "A serial port outlives its link"): bytes with their
 * numbers in both directions, one claim that writes, any number that read. It outlives the port's
 * openings and the links; a claim outlives its sessions, and may write again for a minute.
 *
 * Bounded: what nobody has acknowledged is kept up to MAX_KEPT_BYTES. The claim that writes, or the
 * only one, makes a full store pause the port while something is heard from it; the others never
 * do: they are told what they miss.
 */
import { toBase64url } from "@blindrelay/protocol/crypto";
import { Alarm } from "@blindrelay/protocol/moving-link";
import { Gather, MAX_KEPT_BYTES, NumberedBytes } from "@blindrelay/protocol/serial";
import type { IncomingStream, OutgoingStream } from "@blindrelay/protocol/streams";
import { CLIENT_LEFT, type SessionWiring } from "../core/agent.ts";
import type { Streams } from "../core/streams.ts";
import type { Random, TimerPort } from "../ports.ts";
import { DeviceAway } from "./away.ts";
import { messageOf, type OpenPort } from "./port.ts";

export type Access = "first" | "takeover" | "read-only";

/** What a writer may send before the port has accepted any of it. */
const WRITE_WINDOW_BYTES = 65_536;
/** Bytes of one message: the streams' own limit. */
const CHUNK_BYTES = 12_288;
/**
 * How long a claim outlives its session, and how long a full store waits for one unheard; of one
 * whose client left, only what was kept for it lives on.
 */
const CLAIM_MS = 60_000;
/** How long a claim that cannot write any more still finds what was kept for it. */
const CLAIM_KEPT_MS = 3_600_000;
/** Claims of a port; those whose client left are forgotten first, then those without a session. */
const MAX_CLAIMS = 64;
/** How long one who is asked has to show itself. */
const ASKED_MS = 10_000;
const ASKED_LOOK_MS = 50;
/** When a client was heard that left its session: it holds up nothing. */
const LEFT = Number.NEGATIVE_INFINITY;
/** How often a paused port's reader is looked for, and an untold end is told again. */
const LOOK_MS = 250;

/** What a port needs from its runtime. */
export interface RawPortEdge {
  readonly timer: TimerPort;
  readonly random: Random;
  /** The time as ISO 8601 says it, for people. */
  date(): string;
}

/** How the sessions of the running agent are reached. */
export interface SessionsOfPort extends Pick<SessionWiring, "heardAt"> {
  readonly streams: Streams;
  /** False if it cannot be sent now. */
  notify(sid: string, method: string, params: object): boolean;
}

export interface Resume {
  readonly claim: string;
  readonly user: string;
  readonly opening: unknown;
  readonly read: { readonly stream: unknown; readonly from: number | undefined };
  /** Undefined: it only reads. */
  readonly write: { readonly stream: unknown } | undefined;
  readonly takeover: boolean;
}

interface Claim {
  readonly id: string;
  /** Of `serial.read` and `serial.write`: it ends with its streams. */
  readonly isBare: boolean;
  user: string;
  readonly since: string;
  sid: string;
  /** How often it was asked for; and whether that has succeeded. */
  asked: number;
  isUsed: boolean;
  writes: boolean;
  out: OutgoingStream | null;
  in: IncomingStream | null;
  /** Of the bytes of `in`. */
  again: Again;
  /** The number of the next byte to send to it, and of the first that it has not acknowledged. */
  next: number;
  acknowledged: number;
  /** Up to this number it was told what does not come, and nothing of that comes later. */
  told: number;
  /** The first grant of `out`, which acknowledges nothing. */
  window: number;
  /** When something verified last came from it, once its session is over. */
  heardAt: number;
  readonly expiry: Alarm;
}

/**
 * Bytes that wait at a resume. They are not acknowledged, so the client sends them again, and that
 * is all that their coming again is for.
 */
interface Again {
  /** Still to come, and come. */
  left: number;
  came: number;
  /** That the port has taken, and of which the client knows. */
  done: number;
  granted: number;
}

/** Bytes, or a change of settings, in the order in which they came. */
interface Job {
  readonly claim: Claim | null;
  /** Of the change; null: these are bytes, which their claim outlives. */
  readonly sid: string | null;
  /** That the port has not taken yet. */
  bytes: number;
  run(port: OpenPort): Promise<void>;
  isPurged: boolean;
  /** Of a process with this claim that came before, so that nobody sends these bytes again. */
  isEarlier: boolean;
  drop(): void;
}

export interface Counts {
  bytes_in: number;
  bytes_out: number;
  /** Bytes from the device that came while nobody read, or that a reader left. */
  discarded: number;
}

export class RawPort {
  readonly counts: Counts = { bytes_in: 0, bytes_out: 0, discarded: 0 };
  /** Null while the port is closed. */
  opening: string | null = null;
  readonly access: Access;
  private readonly name: string;
  private readonly edge: RawPortEdge;
  private readonly timer: TimerPort;
  private port: OpenPort | null = null;
  private sessions: SessionsOfPort | null = null;
  private kept = new NumberedBytes();
  private taken = 0;
  /** Whose bytes were the last, and the number after those that others had written before. */
  private lastWriter: string | null = null;
  private lastFrom = 0;
  private jobs: Job[] = [];
  private running: Promise<void> | null = null;
  private readonly claims = new Map<string, Claim>();
  /** Who writes as soon as the port has accepted what is under way. */
  private next: Claim | null = null;
  private readonly gather: Gather;
  private paused = false;
  private readonly look: Alarm;

  constructor(name: string, access: Access, edge: RawPortEdge) {
    this.name = name;
    this.access = access;
    this.edge = edge;
    this.timer = edge.timer;
    this.gather = new Gather(edge.timer, () => this.flush());
    this.look = new Alarm(edge.timer);
  }

  // ---- the port

  opened(port: OpenPort, sessions: SessionsOfPort): void {
    this.port = port;
    this.sessions = sessions;
    this.opening = toBase64url(this.edge.random(16));
    this.kept = new NumberedBytes();
    this.taken = 0;
    this.lastWriter = null;
    this.lastFrom = 0;
    this.paused = false;
    for (const claim of this.claims.values()) {
      claim.next = 0;
      claim.acknowledged = 0;
      claim.told = 0;
    }
  }

  /** Sends the rest as far as there is credit for it, and then tells everybody the reason. */
  closed(reason: string): void {
    this.flush();
    for (const claim of this.claims.values()) {
      const left = this.kept.end - claim.next;
      if (left > 0) this.tellLost(claim, this.kept.end);
      const unread = claim.isBare && left > 0;
      const told = unread ? `${reason}; ${left} bytes of the device were not read` : reason;
      this.endStreams(claim, told);
      if (claim.isBare) claim.writes = false;
    }
    this.gather.stop();
    this.look.clear();
    for (const job of this.jobs.splice(0)) job.drop();
    this.opening = null;
    this.port = null;
  }

  data(bytes: Uint8Array): void {
    this.counts.bytes_in += bytes.length;
    const readers = this.readers();
    if (readers.length === 0) {
      this.counts.discarded += bytes.length;
      this.kept.skip(bytes.length);
      return;
    }
    this.kept.push(bytes);
    // What cannot be sent fills no message.
    const waiting = readers.map(({ out, next }) =>
      Math.min(out?.credit ?? 0, this.kept.end - next),
    );
    const most = Math.max(...waiting);
    if (most > 0) this.gather.add(most, most >= CHUNK_BYTES);
    this.bound();
  }

  /** The session is over, or packets of it are missing; null: the agent stops. */
  lost(sid: string | null, reason: string): void {
    // Or whoever opens sessions again and again would keep the port busy for hours.
    if (sid !== null && this.sessions?.heardAt(sid) === null)
      this.keepJobs((job) => job.sid !== sid);
    for (const claim of this.claims.values()) {
      if (sid !== null && claim.sid !== sid) continue;
      if (sid !== null && this.sessions?.heardAt(sid) !== null) continue;
      claim.out = null;
      claim.in = null;
      const isLeft = reason === CLIENT_LEFT;
      if (claim.isBare || (isLeft && !claim.isUsed)) this.remove(claim);
      else if (isLeft) this.leave(claim);
      else this.expireLater(claim);
    }
  }

  /**
   * After the bytes that came before, unless the session is over by then. Rejects with what
   * `change` rejects with.
   */
  inOrder(sid: string, change: (port: OpenPort) => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.run({
        claim: null,
        sid,
        bytes: 0,
        isPurged: false,
        isEarlier: false,
        run: (port) => change(port).then(resolve, reject),
        drop: () => reject(this.away()),
      });
    });
  }

  // ---- those who use it

  /** What `serial.ports` says of it. */
  get usage(): object {
    const writer = this.writer();
    const watchers = [...this.claims.values()].filter(
      (claim) => claim !== writer && claim.out !== null,
    ).length;
    const user = writer === null ? null : { user: writer.user, since: writer.since };
    return {
      access: this.access,
      open: this.opening !== null,
      opening: this.opening,
      user,
      watchers,
    };
  }

  get isRead(): boolean {
    return [...this.claims.values()].some(({ out }) => out !== null);
  }

  get isWritten(): boolean {
    return [...this.claims.values()].some((claim) => claim.in !== null);
  }

  /** Throws an Error if nobody may write, or change anything. */
  checkWritable(): void {
    if (this.access === "read-only") throw new Error(`${this.name} is read-only`);
  }

  /**
   * `serial.read`: the newest such reader takes over from the one before. Throws a DeviceAway
   * without a port.
   */
  readBare(sid: string, stream: unknown): void {
    if (this.opening === null) throw this.away();
    const claim = this.bareClaim(sid);
    try {
      this.startReading(claim, stream);
    } catch (error) {
      this.removeIfDone(claim);
      throw error;
    }
    for (const other of this.claims.values()) {
      if (other !== claim && other.isBare) other.out?.abort("another reader took over");
    }
  }

  /**
   * `serial.write`. Rejects with an Error if another one keeps the port; see `Access`. As
   * `readBare`.
   */
  writeBare(sid: string, stream: unknown): void | Promise<void> {
    this.checkWritable();
    const claim = this.bareClaim(sid);
    const start = (): void => {
      try {
        if (this.opening === null) throw this.away();
        this.dropJobs(null);
        this.startWriting(claim, stream);
      } finally {
        this.removeIfDone(claim);
      }
    };
    const holder = this.writer();
    if (holder === null || holder === claim) return start();
    if (this.access === "takeover") {
      this.takeFrom(holder, claim);
      return start();
    }
    return this.demand(claim, false).then(start, (error) => {
      this.removeIfDone(claim);
      throw error;
    });
  }

  /**
   * `serial.resume`. `turn`: the number after the last byte that another one wrote. It is not the
   * claim's last one in this opening: others have written since, so that `written` is not about its
   * bytes. Rejects with an Error if it is refused, or a DeviceAway without a port.
   */
  async resume(
    sid: string,
    asked: Resume,
  ): Promise<{ opening: string; read: number; written: number; turn: number }> {
    if (this.opening === null) throw this.away();
    if (asked.write !== undefined) this.checkWritable();
    const known = this.claims.get(asked.claim);
    const claim = known ?? this.makeClaim(asked.claim, sid, asked.user, false);
    const wrote = claim.writes;
    const attempt = ++claim.asked;
    // An attempt before this one does not write any more.
    if (this.next === claim) this.next = null;
    // While another is asked, the port may close: this one is told from where it is.
    if (known === undefined) this.goOn(claim, asked);
    try {
      if (asked.write !== undefined && !claim.writes) await this.demand(claim, asked.takeover);
      if (this.opening === null) throw this.away();
      if (claim.asked !== attempt) throw new Error("its claim was resumed since");
      // Its session ended while another was asked.
      if (this.sessions?.heardAt(sid) === null) throw new Error("the session is over");
      // Processes that follow one another would each add to what waits, without end.
      const isOther = asked.write !== undefined && asked.opening !== this.opening;
      if (isOther && this.queuedOf(claim) > WRITE_WINDOW_BYTES) {
        throw new Error("too much of this claim waits to be written: try again later");
      }
    } catch (error) {
      // What came later decides.
      if (claim.asked !== attempt) throw error;
      if (!wrote) claim.writes = claim.in !== null;
      if (!claim.isUsed) this.remove(claim);
      throw error;
    }
    this.endStreams(claim, "its claim was resumed");
    claim.sid = sid;
    claim.user = asked.user;
    claim.expiry.clear();
    this.goOn(claim, asked);
    // Another process does not know what waits of the one before, and writes after that.
    if (asked.opening !== this.opening) {
      for (const job of this.jobs) if (job.claim === claim) job.isEarlier = true;
    }
    const before = this.queuedOf(claim, ({ isEarlier }) => isEarlier);
    const written = this.taken + before;
    try {
      this.startReading(claim, asked.read.stream);
      if (asked.write !== undefined) {
        claim.writes = true;
        this.startWriting(claim, asked.write.stream);
        claim.again.left = this.queuedOf(claim) - before;
      } else claim.writes = false;
    } catch (error) {
      this.endStreams(claim, messageOf(error));
      if (!wrote) claim.writes = false;
      if (claim.isUsed) this.expireLater(claim);
      else this.remove(claim);
      throw error;
    }
    claim.isUsed = true;
    this.bound();
    const turn = this.lastWriter === claim.id ? this.lastFrom : this.taken;
    return { opening: this.opening, read: Math.max(claim.next, this.kept.from), written, turn };
  }

  /** Where its client is in this opening, if it knows it. */
  private goOn(claim: Claim, { opening, read: { from } }: Resume): void {
    if (opening !== this.opening || from === undefined) return;
    // Beyond what has come it heard of another under this opening, and learns so by `read`.
    claim.next = Math.max(Math.min(from, this.kept.end), claim.told);
    claim.acknowledged = claim.next;
  }

  /** Forgets what has not been sent to the session's claims, or not been written of theirs. */
  purge(sid: string, read: boolean, write: boolean): void {
    for (const claim of this.claims.values()) {
      if (claim.sid !== sid) continue;
      if (read && claim.next < this.kept.end) this.tellLost(claim, this.kept.end);
    }
    this.bound();
    if (write) this.skipWaiting(sid);
  }

  // ---- from the device

  private startReading(claim: Claim, id: unknown): void {
    const { streams } = this.sessions as SessionsOfPort;
    const { sid } = claim;
    const before = claim.out;
    claim.out = null;
    before?.abort("another reader took over");
    claim.window = 0;
    const out = streams.outgoing(sid, id, {
      writable: () => {
        const granted = out.credit + out.sent;
        if (claim.window === 0) claim.window = granted;
        if (claim.out === out) {
          // Some clients also acknowledge what they got by the stream before.
          const unacknowledged = Math.max(0, out.sent - (granted - claim.window));
          claim.acknowledged = Math.max(claim.acknowledged, claim.next - unacknowledged);
        }
        this.send(claim);
        this.bound();
      },
      ended: () => {
        if (claim.out !== out) return;
        claim.out = null;
        claim.heardAt = this.lastHeard(claim);
        this.removeIfDone(claim);
        this.bound();
      },
    });
    if (claim.isBare) {
      claim.next = this.kept.end;
      claim.acknowledged = this.kept.end;
    }
    claim.out = out;
  }

  private flush(): void {
    for (const claim of this.claims.values()) this.send(claim);
  }

  private send(claim: Claim): void {
    const { out } = claim;
    if (out === null) return;
    while (claim.out === out && out.credit > 0 && claim.next < this.kept.end) {
      if (claim.next < this.kept.from && !this.tellLost(claim, this.kept.from)) return;
      claim.next += out.write(this.kept.read(claim.next, CHUNK_BYTES));
    }
  }

  /** Says that bytes up to number `to` do not come; false if that cannot be said now. */
  private tellLost(claim: Claim, to: number): boolean {
    const { name: port, opening } = this;
    const lost = { port, opening, from: claim.next, bytes: to - claim.next };
    if (claim.isBare) this.counts.discarded += lost.bytes;
    else if (this.sessions?.notify(claim.sid, "serial.lost", lost) !== true) return false;
    claim.next = to;
    claim.told = to;
    claim.acknowledged = Math.max(claim.acknowledged, to - (claim.out?.sent ?? 0));
    return true;
  }

  private readers(): Claim[] {
    return [...this.claims.values()].filter(({ isBare, out }) => !isBare || out !== null);
  }

  /** The one for whom the port is paused. */
  private leader(): Claim | null {
    const now = this.timer.now();
    const heard = this.readers().filter((claim) => now - this.lastHeard(claim) < CLAIM_MS);
    const writer = heard.find(({ writes }) => writes);
    return writer ?? (heard.length === 1 ? (heard[0] as Claim) : null);
  }

  private lastHeard(claim: Claim): number {
    return this.sessions?.heardAt(claim.sid) ?? claim.heardAt;
  }

  /** Forgets what is acknowledged, or too much; pauses and resumes the port. */
  private bound(): void {
    const { kept } = this;
    const leader = this.leader();
    let from = kept.end;
    for (const { acknowledged } of this.readers()) from = Math.min(from, acknowledged);
    from = Math.max(from, kept.end - MAX_KEPT_BYTES);
    const waiting = leader === null ? 0 : kept.end - leader.acknowledged;
    kept.drop(Math.min(from, kept.end - waiting));
    if (!this.paused && waiting >= MAX_KEPT_BYTES) {
      this.paused = true;
      this.port?.pause();
    } else if (this.paused && waiting <= MAX_KEPT_BYTES / 2) {
      this.paused = false;
      this.port?.resume();
    }
    if (this.paused && !this.look.isSet) this.look.set(LOOK_MS, () => this.bound());
  }

  // ---- to the device

  private startWriting(claim: Claim, id: unknown): void {
    const { streams } = this.sessions as SessionsOfPort;
    const { sid } = claim;
    const stream = streams.incoming(sid, id, {
      data: (bytes) => {
        if (claim.in === stream) this.write(claim, stream, bytes);
      },
      ended: (error) => {
        if (error !== null) {
          if (claim.in !== stream) return;
          claim.in = null;
          claim.heardAt = this.lastHeard(claim);
          this.removeIfDone(claim);
        } else this.finish(claim, stream);
      },
    });
    const before = claim.in;
    claim.in = stream;
    claim.again = { left: 0, came: 0, done: 0, granted: 0 };
    claim.writes = true;
    before?.abort("another writer took over");
    stream.grant(WRITE_WINDOW_BYTES);
  }

  /** The client has ended its stream: its claim to write ends when everything is written. */
  private finish(claim: Claim, stream: IncomingStream): void {
    this.run({
      claim,
      sid: null,
      bytes: 0,
      isPurged: false,
      isEarlier: false,
      run: async () => {
        stream.confirm();
        if (claim.in !== stream) return;
        claim.in = null;
        claim.writes = false;
        this.removeIfDone(claim);
      },
      drop: () => undefined,
    });
  }

  private write(claim: Claim, stream: IncomingStream, came: Uint8Array): void {
    const { again } = claim;
    const known = Math.min(again.left, came.length);
    again.left -= known;
    again.came += known;
    this.grantAgain(claim);
    const bytes = came.subarray(known);
    if (bytes.length === 0) return;
    const { opening } = this;
    const job: Job = {
      claim,
      sid: null,
      bytes: bytes.length,
      isPurged: false,
      isEarlier: false,
      run: async (port) => {
        try {
          if (!job.isPurged) await port.write(bytes);
        } catch (error) {
          claim.in?.abort(messageOf(error));
          return;
        }
        const count = job.bytes;
        job.bytes = 0;
        if (!job.isPurged) this.counts.bytes_out += count;
        if (this.opening === opening) this.count(claim, count);
        if (claim.in === stream) stream.grant(count);
        else if (!job.isEarlier) {
          claim.again.done += count;
          this.grantAgain(claim);
        }
      },
      drop: () => undefined,
    };
    this.run(job);
  }

  /** A grant acknowledges bytes of its stream: they have come by it, and the port has them. */
  private grantAgain({ again, in: stream }: Claim): void {
    const due = Math.min(again.came, again.done) - again.granted;
    again.granted += due;
    stream?.grant(due);
  }

  private count({ id }: Claim, bytes: number): void {
    if (this.lastWriter !== id) this.lastFrom = this.taken;
    this.lastWriter = id;
    this.taken += bytes;
  }

  private run(job: Job): void {
    this.jobs.push(job);
    this.running ??= this.runAll();
  }

  private async runAll(): Promise<void> {
    // In a later turn, so that whoever asked is ready for the outcome.
    await null;
    try {
      for (let job = this.jobs[0]; job !== undefined; job = this.jobs[0]) {
        const { port } = this;
        if (port === null) {
          this.jobs.shift();
          job.drop();
          continue;
        }
        await job.run(port);
        if (this.jobs[0] === job) this.jobs.shift();
      }
    } finally {
      // In the same turn, so that a job that comes next finds nobody who has just looked.
      this.running = null;
    }
  }

  /** Bytes that wait count as taken, so that both sides go on with the same numbers. */
  private skipWaiting(sid: string): void {
    for (const job of this.jobs.slice(1).reverse()) {
      const { claim } = job;
      if (claim?.sid !== sid) continue;
      job.isPurged = true;
      // What the client has not sent again, it forgets, and gives its numbers to others.
      const forgotten = Math.min(claim.again.left, job.bytes);
      job.bytes -= forgotten;
      claim.again.left -= forgotten;
    }
  }

  private queuedOf(claim: Claim, counts: (job: Job) => boolean = () => true): number {
    const jobs = this.jobs.filter((job) => job.claim === claim && counts(job));
    return jobs.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Drops what was not written by `claim`. */
  private dropJobs(claim: Claim | null): void {
    this.keepJobs((job) => job.claim === null || job.claim === claim);
  }

  /** Drops the others, except for what the port is accepting. */
  private keepJobs(keeps: (job: Job) => boolean): void {
    this.jobs = this.jobs.filter((job, index) => {
      const stays = index === 0 || keeps(job);
      if (!stays) job.drop();
      return stays;
    });
  }

  // ---- claims

  private writer(): Claim | null {
    if (this.next !== null) return this.next;
    for (const claim of this.claims.values()) if (claim.writes) return claim;
    return null;
  }

  /** Resolves when `claim` may write; rejects with an Error that names who does. */
  private async demand(claim: Claim, takeover: boolean): Promise<void> {
    const { asked } = claim;
    const check = (): void => {
      if (this.claims.get(claim.id) !== claim) throw new Error("another client took over");
      if (claim.asked !== asked) throw new Error("its claim was resumed since");
    };
    for (let holder = this.writer(); holder !== null && holder !== claim; holder = this.writer()) {
      if (takeover && this.access === "takeover") {
        this.takeFrom(holder, claim);
        continue;
      }
      const isGone = await this.isGone(holder);
      check();
      if (!isGone) {
        const how = takeover ? `; its access is ${this.access}, not takeover` : "";
        throw new Error(`${this.name} is in use by ${holder.user} since ${holder.since}${how}`);
      }
      // It may come back, with streams that it takes for open.
      if (this.writer() === holder) this.takeFrom(holder, claim);
    }
    this.next = claim;
    this.dropJobs(claim);
    // What the port is accepting from the one before counts.
    while (this.jobs[0] !== undefined && this.jobs[0].claim !== claim && this.running !== null) {
      await this.running;
    }
    check();
    claim.writes = true;
    this.next = null;
  }

  private takeFrom(holder: Claim, claim: Claim): void {
    this.endStreams(holder, `${claim.user} took over`);
    this.remove(holder);
  }

  /** Asks the one who writes; resolves to true if nothing verified comes from it. */
  private async isGone(holder: Claim): Promise<boolean> {
    const { sid } = holder;
    const askedAt = this.timer.now();
    this.sessions?.notify(sid, "serial.asked", { port: this.name });
    while (this.timer.now() - askedAt < ASKED_MS) {
      await new Promise<void>((resolve) => this.timer.set(ASKED_LOOK_MS, resolve));
      if (this.writer() !== holder) return true;
      if (holder.sid !== sid || (this.sessions?.heardAt(sid) ?? -1) >= askedAt) return false;
    }
    return true;
  }

  private bareClaim(sid: string): Claim {
    const id = `session ${sid}`;
    return this.claims.get(id) ?? this.makeClaim(id, sid, "another client", true);
  }

  private makeClaim(id: string, sid: string, user: string, isBare: boolean): Claim {
    this.makeRoom();
    const claim: Claim = {
      id,
      isBare,
      user,
      since: this.edge.date(),
      sid,
      asked: 0,
      isUsed: false,
      writes: false,
      out: null,
      in: null,
      again: { left: 0, came: 0, done: 0, granted: 0 },
      next: this.kept.end,
      acknowledged: this.kept.end,
      told: 0,
      window: 0,
      heardAt: this.timer.now(),
      expiry: new Alarm(this.timer),
    };
    this.claims.set(id, claim);
    return claim;
  }

  /** Throws an Error if every claim is in use. */
  private makeRoom(): void {
    if (this.claims.size < MAX_CLAIMS) return;
    const away = [...this.claims.values()].filter(({ expiry }) => expiry.isSet);
    const first = away.find(({ heardAt }) => heardAt === LEFT) ?? away[0];
    if (first === undefined) {
      throw new Error(`${this.name} has ${MAX_CLAIMS} users, which is the most`);
    }
    this.remove(first);
  }

  private endStreams(claim: Claim, reason: string): void {
    const { out, in: incoming } = claim;
    claim.out = null;
    claim.in = null;
    out?.abort(reason);
    incoming?.abort(reason);
  }

  private removeIfDone(claim: Claim): void {
    if (claim.in === null && claim.isBare) claim.writes = false;
    if (claim.isBare && claim.out === null && claim.in === null) this.remove(claim);
  }

  private remove(claim: Claim): void {
    claim.expiry.clear();
    if (this.next === claim) this.next = null;
    if (this.claims.get(claim.id) !== claim) return;
    claim.writes = false;
    this.claims.delete(claim.id);
    if (this.readers().length === 0) {
      this.counts.discarded += Math.max(0, this.kept.end - Math.max(claim.next, this.kept.from));
    }
    this.bound();
  }

  /**
   * Its client may only have left the session, as after a call without an answer: what was kept for
   * it stays for a minute, but holds up nothing.
   */
  private leave(claim: Claim): void {
    if (this.next === claim) this.next = null;
    claim.writes = false;
    claim.heardAt = LEFT;
    claim.expiry.set(CLAIM_MS, () => this.remove(claim));
    this.bound();
  }

  private expireLater(claim: Claim): void {
    claim.heardAt = Math.max(claim.heardAt, this.timer.now() - 1);
    if (claim.expiry.isSet) return;
    claim.expiry.set(CLAIM_MS, () => {
      claim.expiry.set(CLAIM_KEPT_MS - CLAIM_MS, () => this.remove(claim));
      claim.writes = false;
      this.bound();
    });
  }

  away(): DeviceAway {
    return new DeviceAway(`${this.name} is not there`, false);
  }
}
