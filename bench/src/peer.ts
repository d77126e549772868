/** One connection of the load generator, over the simulator's light link. */
import { PING_TEXT, PONG_TEXT } from "@blindrelay/protocol/wire";
import { liveLinkPort } from "@blindrelay/simulator";

const links = liveLinkPort();
type Link = ReturnType<typeof links.connect>;

export class Peer {
  /** Hears every message but the relay's pings. */
  received: (text: string) => void = () => {};
  /** Hears that the connection was lost. */
  failed: (error: Error) => void = () => {};
  private readonly link: Link;
  private ended = false;

  private constructor(link: Link) {
    this.link = link;
  }

  /**
   * Rejects where the connection does not open. One that closes later ends the benchmark with an
   * error.
   */
  static connect(url: string): Promise<Peer> {
    return new Promise((resolve, reject) => {
      const link = links.connect(url, {
        opened: () => resolve(peer),
        // The relay's own traffic is no part of what is measured.
        received: (text) => (text === PING_TEXT ? link.send(PONG_TEXT) : peer.received(text)),
        closed: (code, reason) => {
          const error = new Error(`a connection of the benchmark closed: ${code} ${reason}`);
          if (peer.ended) return;
          reject(error);
          peer.failed(error);
        },
      });
      const peer = new Peer(link);
    });
  }

  send(text: string): void {
    this.link.send(text);
  }

  /** The next message. */
  next(): Promise<string> {
    return new Promise((resolve, reject) => {
      this.failed = reject;
      this.received = (text) => resolve(text);
    });
  }

  /** Sends a message and waits for the next one. */
  ask(text: string): Promise<string> {
    const answer = this.next();
    this.send(text);
    return answer;
  }

  close(): void {
    this.ended = true;
    this.link.close(1000, "");
  }
}
