/** A stream through a proxy that can be written to at once, as a socket that connects can. */
import { Duplex } from "node:stream";
import { openTunnel, type proxyFor } from "@blindrelay/protocol/net/node";

export class Tunnel extends Duplex {
  private readonly begin: () => Promise<Duplex>;
  private inner: Duplex | null = null;

  constructor(proxy: NonNullable<ReturnType<typeof proxyFor>>, host: string, port: number) {
    super();
    this.begin = () => openTunnel(proxy, host, port);
  }

  override _construct(done: (error?: Error) => void): void {
    this.begin().then((inner) => {
      this.inner = inner;
      inner.on("data", (chunk) => {
        if (!this.push(chunk)) inner.pause();
      });
      inner.on("end", () => this.push(null));
      inner.on("error", (error) => this.destroy(error));
      inner.on("close", () => this.destroy());
      done();
    }, done);
  }

  override _read(): void {
    this.inner?.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void) {
    this.inner?.write(chunk, done);
  }

  override _final(done: () => void): void {
    this.inner?.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.inner?.destroy();
    done(error);
  }
}
