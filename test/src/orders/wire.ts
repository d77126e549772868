/** Every packet that was ever sent: the relay keeps them all. */

interface Sent {
  readonly client: number;
  readonly seq: number;
  readonly text: string;
}

/** Where an `A` comes from. */
export interface Origin {
  readonly boot: number;
  readonly epoch: number;
}

interface FromAgent extends Sent, Origin {}

export class Wire {
  readonly toAgent: Sent[];
  readonly toClient: FromAgent[];

  constructor(from?: Wire) {
    this.toAgent = [...(from?.toAgent ?? [])];
    this.toClient = [...(from?.toClient ?? [])];
  }

  texts(): string[] {
    return [...this.toAgent, ...this.toClient].map(({ text }) => text);
  }

  fromClient(client: number, text: string): void {
    const { seq } = JSON.parse(text) as { seq: number };
    if (!this.toAgent.some((sent) => sent.text === text)) this.toAgent.push({ client, seq, text });
  }

  /** `origin`: of an `A` that was not seen before. Returns the packet's sid. */
  fromAgent(text: string, origin: Origin): string {
    const { sid, seq } = JSON.parse(text) as { sid: string; seq: number };
    if (!this.toClient.some((sent) => sent.text === text)) {
      const known = this.originOf(sid) ?? { client: this.clientOf(sid), ...origin };
      this.toClient.push({ ...known, seq, text });
    }
    return sid;
  }

  /** Whose a sid is, and from which boot and epoch; null for one that no answer named. */
  originOf(sid: string): (Origin & { readonly client: number }) | null {
    const known = this.toClient.find(({ text }) => text.includes(sid));
    if (known === undefined) return null;
    return { client: known.client, boot: known.boot, epoch: known.epoch };
  }

  packetToAgent(client: number, seq: number): string {
    const packet = this.toAgent.find((sent) => sent.client === client && sent.seq === seq);
    if (packet === undefined) throw new Error(`client ${client} sent no packet ${seq}`);
    return packet.text;
  }

  packetToClient(client: number, boot: number, epoch: number, seq: number): string {
    const packet = this.toClient.find(
      (sent) =>
        sent.client === client && sent.boot === boot && sent.epoch === epoch && sent.seq === seq,
    );
    if (packet === undefined) {
      throw new Error(`client ${client} was sent no packet ${seq} of ${boot}, ${epoch}`);
    }
    return packet.text;
  }

  private clientOf(sid: string): number {
    const c = sid.split(".")[0];
    return this.toAgent.find(({ text }) => text.includes(`"${c}"`))?.client ?? -1;
  }
}
