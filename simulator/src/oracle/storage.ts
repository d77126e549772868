/**
 * A device's storage keeps what its program stored, also over restarts; a change that a power cut
 * interrupted leaves the old text or the new one, and all others alone.
 */
import type { Agent } from "@blindrelay/agent-sdk";

type Text = string | null;

export class StorageOracle {
  private readonly violate: (what: string) => void;
  private readonly isPowerCut: (error: unknown) => boolean;
  /** By key, what may be there: several, once a change was interrupted. */
  private readonly known = new Map<string, readonly Text[]>();

  constructor(violate: (what: string) => void, isPowerCut: (error: unknown) => boolean) {
    this.violate = violate;
    this.isPowerCut = isPowerCut;
  }

  /** The device starts: compares what is there, and follows what its program does with it. */
  watch(storage: Agent["storage"]): void {
    const { get, set, remove } = {
      get: storage.get.bind(storage),
      set: storage.set.bind(storage),
      remove: storage.remove.bind(storage),
    };
    storage.get = (key) => this.compare(key, get(key));
    storage.set = (key, text) => this.change(key, text, () => set(key, text));
    storage.remove = (key) => this.change(key, null, () => remove(key));
    for (const key of this.known.keys()) this.compare(key, get(key));
  }

  private compare(key: string, text: Text): Text {
    const before = this.textsOf(key);
    this.known.set(key, [text]);
    if (before.includes(text)) return text;
    const stored = before.map((one) => JSON.stringify(one)).join(" or ");
    this.violate(`has ${JSON.stringify(text)} as "${key}", and stored ${stored}`);
    return text;
  }

  private change(key: string, text: Text, make: () => void): void {
    try {
      make();
    } catch (error) {
      if (this.isPowerCut(error)) this.known.set(key, [...this.textsOf(key), text]);
      throw error;
    }
    this.known.set(key, [text]);
  }

  private textsOf(key: string): readonly Text[] {
    return this.known.get(key) ?? [null];
  }
}
