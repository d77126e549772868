/** Espruino's Storage: files of byte strings; erased files take space until `compact`. */
const HEADER_BYTES = 32;

export class DoubleStorage {
  private readonly bytes: number;
  private readonly held = new Map<string, string>();
  private trash = 0;
  /** Called before each write; a test can cut the power here or damage a byte. */
  onWrite: (name: string, offset: number) => void = () => undefined;
  /** Names in the order of writing. */
  readonly written: string[] = [];

  constructor(bytes: number) {
    this.bytes = bytes;
  }

  read(name: string): string | undefined {
    return this.held.get(name);
  }

  readArrayBuffer(name: string): Uint8Array | undefined {
    const text = this.held.get(name);
    return text === undefined ? undefined : new Uint8Array(Buffer.from(text, "latin1"));
  }

  write(name: string, content: string | Uint8Array, offset = 0, total = 0): boolean {
    if (name.length > 28) throw new Error("bad file");
    const data = typeof content === "string" ? content : Buffer.from(content).toString("latin1");
    this.onWrite(name, offset);
    const size = total === 0 ? data.length : total;
    if (offset === 0) {
      const old = this.held.get(name);
      if (size + HEADER_BYTES > this.getFree()) return false;
      if (old !== undefined) this.erase(name);
      this.held.set(name, "\xff".repeat(size));
      this.written.push(name);
    }
    const file = this.held.get(name);
    if (file === undefined || offset + data.length > file.length) return false;
    for (let i = 0; i < data.length; i++) {
      const held = file[offset + i];
      if (held !== "\xff" && held !== data[i])
        throw new Error("File already written with different data");
    }
    this.held.set(name, file.slice(0, offset) + data + file.slice(offset + data.length));
    return true;
  }

  erase(name: string): void {
    const old = this.held.get(name);
    if (old === undefined) return;
    this.trash += old.length + HEADER_BYTES;
    this.held.delete(name);
  }

  list(): string[] {
    return [...this.held.keys()];
  }

  getFree(): number {
    let used = this.trash;
    for (const text of this.held.values()) used += text.length + HEADER_BYTES;
    return this.bytes - used;
  }

  getStats(): { freeBytes: number; trashBytes: number } {
    return { freeBytes: this.getFree(), trashBytes: this.trash };
  }

  compact(): void {
    this.trash = 0;
  }
}
