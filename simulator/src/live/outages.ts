/** Which devices of a live fleet are without power. */

/** What a device gets when its power is back: new tokens. */
export interface Changed {
  relayToken?: string;
  /** Its storage is then empty. */
  agentToken?: string;
}

/** If outages of a device overlap, the end of the last one restores its power. */
export class Outages {
  private readonly open = new Map<number, { count: number; changed: Changed }>();

  begin(device: number): void {
    const outage = this.open.get(device) ?? { count: 0, changed: {} };
    outage.count += 1;
    this.open.set(device, outage);
  }

  /** All changes since the first outage began; null if another one is still active. */
  end(device: number, changed: Changed): Changed | null {
    const outage = this.open.get(device) ?? { count: 1, changed: {} };
    Object.assign(outage.changed, changed);
    outage.count -= 1;
    if (outage.count > 0) return null;
    this.open.delete(device);
    return outage.changed;
  }
}
