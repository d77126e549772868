/**
 * A session's packets that came on its next link before earlier ones came on the last one (section
 * 3, "Renewing"): each waits until the one before it is there, all for at most a second. A session
 * never accepts a lower `seq` after a higher one, so what is not waited for is lost.
 */
import { parsePacket } from "@blindrelay/protocol/crypto";
import { Alarm } from "@blindrelay/protocol/moving-link";
import type { TimerPort } from "../ports.ts";
import { MAX_EARLY_BYTES, RENEWED_LINK_MS } from "./defaults.ts";

export class EarlyPackets {
  private readonly alarm: Alarm;
  /** They have waited long enough. */
  private readonly due: () => void;
  private readonly bySeq = new Map<number, string>();
  private bytes = 0;

  constructor(timer: TimerPort, due: () => void) {
    this.alarm = new Alarm(timer);
    this.due = due;
  }

  /** Keeps a packet of `sid` unless it is the next after `received`. False: it does not wait. */
  hold(text: string, sid: string | null, received: number): boolean {
    const packet = parsePacket(text);
    if (packet === null || packet.sid !== sid || packet.seq <= received + 1) return false;
    if (this.bySeq.has(packet.seq) || this.bytes + text.length > MAX_EARLY_BYTES) return false;
    this.bySeq.set(packet.seq, text);
    this.bytes += text.length;
    if (!this.alarm.isSet) this.alarm.set(RENEWED_LINK_MS, this.due);
    return true;
  }

  /** The packet with this `seq`, which waits no longer; null: it is not here. */
  take(seq: number): string | null {
    const text = this.bySeq.get(seq);
    if (text === undefined) return null;
    this.bySeq.delete(seq);
    this.bytes -= text.length;
    if (this.bySeq.size === 0) this.clear();
    return text;
  }

  /** All of them, in order. */
  takeAll(): string[] {
    const texts = [...this.bySeq].sort(([a], [b]) => a - b).map(([, text]) => text);
    this.clear();
    return texts;
  }

  clear(): void {
    this.bySeq.clear();
    this.bytes = 0;
    this.alarm.clear();
  }
}
