/** Which devices of a live fleet are without power. */

/** What a device gets with its power: new tokens. */
export interface Changed {
  relayToken?: string;
  /** Goes with empty storage. */
  agentToken?: string;
}

/** Where outages of a device overlap, the end of the last gives it power. */
export class Outages {
  private readonly open = new Map<number, { count: number; changed: Changed }>();

  begin(device: number): void {
    const outage = this.open.get(device) ?? { count: 0, changed: {} };
    outage.count += 1;
    this.open.set(device, outage);
  }

  /** All that changed since the first began; null where another is on. */
  end(device: number, changed: Changed): Changed | null {
    const outage = this.open.get(device) ?? { count: 1, changed: {} };
    Object.assign(outage.changed, changed);
    outage.count -= 1;
    if (outage.count > 0) return null;
    this.open.delete(device);
    return outage.changed;
  }
}
