/**
 * The device behind a bridge is away: the SDK answers calls with error -32002, to be tried again.
 */
export class DeviceAway extends Error {
  readonly unavailable = true;
  /** Whether the device may have got the command before. */
  readonly sent: boolean;

  constructor(reason: string, sent: boolean) {
    super(sent ? `${reason}; the command was sent and may have run` : reason);
    this.name = "DeviceAway";
    this.sent = sent;
  }
}
