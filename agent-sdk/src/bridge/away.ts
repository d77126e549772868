/**
 * The device behind a bridge is unavailable: the SDK answers calls with the retryable error -32002.
 */
export class DeviceAway extends Error {
  readonly unavailable = true;
  /** Whether the device may have received the command. */
  readonly sent: boolean;

  constructor(reason: string, sent: boolean) {
    super(sent ? `${reason}; the command was sent and may have run` : reason);
    this.name = "DeviceAway";
    this.sent = sent;
  }
}
