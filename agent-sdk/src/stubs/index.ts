/**
 * Hardware that is not there: the globals that Espruino and Moddable give a device program for
 * pins, buses and serial lines, for its runs in the simulator and on Node. Writes are remembered,
 * so that a pin reads as what was last written to it, by the program or by a test, and a watch of
 * it fires.
 *
 * One file without imports: the virtual world runs its text, for each device apart.
 */

/** What a file of stubs is told of the device whose globals it makes. */
export interface StubbedDevice {
  readonly id: string;
  /** "" on Node. */
  readonly group: string;
  /** Starts so far, this one included. */
  readonly boots: number;
  /** Milliseconds since the run began. */
  now(): number;
  /** From 0 to below 1; in the simulator by its seed. */
  random(): number;
  log(text: string): void;
}

interface Watch {
  readonly pin: string;
  readonly fn: (event: { state: boolean; time: number; lastTime: number; pin: string }) => void;
  readonly edge: string;
  readonly repeat: boolean;
}

export default (device: StubbedDevice): Record<string, unknown> => {
  const values = new Map<string, number>();
  const watches = new Map<number, Watch>();
  let lastWatch = 0;

  const nameOf = (pin: unknown): string => String(pin);
  const read = (pin: unknown): number => values.get(nameOf(pin)) ?? 0;
  const write = (pin: unknown, value: unknown): void => {
    const name = nameOf(pin);
    const before = read(name) >= 0.5;
    const after = Number(value);
    values.set(name, after);
    const state = after >= 0.5;
    if (state === before) return;
    for (const [id, watch] of [...watches]) {
      if (watch.pin !== name || (watch.edge !== "both" && (watch.edge === "rising") !== state))
        continue;
      if (!watch.repeat) watches.delete(id);
      const time = device.now() / 1000;
      // A board calls it from its event loop.
      setTimeout(() => watch.fn({ state, time, lastTime: time, pin: name }), 0);
    }
  };

  class Pin {
    declare private readonly name: string;
    constructor(name: unknown) {
      this.name = nameOf(name);
    }
    toString(): string {
      return this.name;
    }
    read(): boolean {
      return read(this) >= 0.5;
    }
    write(value: unknown): void {
      write(this, Number(value));
    }
    set(): void {
      write(this, 1);
    }
    reset(): void {
      write(this, 0);
    }
    toggle(): boolean {
      write(this, this.read() ? 0 : 1);
      return this.read();
    }
    mode(): void {}
  }

  /** Pins of a number or of an array of bits, the last one the lowest. */
  const digitalWrite = (pin: unknown, value: unknown): void => {
    if (!Array.isArray(pin)) return write(pin, Number(value) > 0 ? 1 : 0);
    for (const [bit, one] of [...pin].reverse().entries()) write(one, (Number(value) >> bit) & 1);
  };
  const digitalRead = (pin: unknown): number =>
    Array.isArray(pin)
      ? pin.reduce((sum: number, one) => sum * 2 + digitalRead(one), 0)
      : read(pin) >= 0.5
        ? 1
        : 0;

  /** Remembers what was written, and reads zeros. */
  const bus = (): Record<string, unknown> => {
    const written: unknown[] = [];
    return {
      written,
      setup: (): void => undefined,
      find: (): void => undefined,
      writeTo: (address: unknown, ...data: unknown[]): void =>
        void written.push([address, ...data]),
      readFrom: (_address: unknown, count: number): Uint8Array => new Uint8Array(count),
      readReg: (_address: unknown, _register: number, count: number): Uint8Array =>
        new Uint8Array(count),
      write: (...data: unknown[]): void => void written.push(...data),
      send: (data: unknown): unknown => {
        written.push(data);
        return typeof data === "number" ? 0 : new Uint8Array((data as ArrayLike<number>).length);
      },
    };
  };
  /** Remembers what was written; `receive(text)` is what arrives. */
  const serial = (): Record<string, unknown> => {
    const written: string[] = [];
    const hearers: ((text: string) => void)[] = [];
    const put = (text: unknown): void => void written.push(String(text));
    return {
      written,
      setup: (): void => undefined,
      unsetup: (): void => undefined,
      available: (): number => 0,
      read: (): string => "",
      write: put,
      print: put,
      println: (text: unknown): void => put(`${text}\r\n`),
      on: (event: string, fn: (text: string) => void): void => {
        if (event === "data") hearers.push(fn);
      },
      removeAllListeners: (): void => void hearers.splice(0),
      receive: (text: string): void => {
        for (const fn of [...hearers]) setTimeout(() => fn(text), 0);
      },
    };
  };

  const setWatch = (
    fn: Watch["fn"],
    pin: unknown,
    options: boolean | { repeat?: boolean; edge?: string } = {},
  ): number => {
    const { repeat = false, edge = "both" } =
      typeof options === "boolean" ? { repeat: options } : options;
    lastWatch++;
    watches.set(lastWatch, { pin: nameOf(pin), fn, edge: String(edge), repeat });
    return lastWatch;
  };

  interface IoOptions {
    pin?: unknown;
    onReadable?: () => void;
  }
  /** ECMA-419's IO classes, as far as a program reads and writes. */
  class Digital {
    declare private readonly pin: string;
    declare private readonly watch: number;
    constructor({ pin, onReadable }: IoOptions) {
      this.pin = nameOf(pin);
      this.watch = onReadable === undefined ? 0 : setWatch(onReadable, pin, { repeat: true });
    }
    read(): number {
      return digitalRead(this.pin);
    }
    write(value: unknown): void {
      digitalWrite(this.pin, value);
    }
    close(): void {
      watches.delete(this.watch);
    }
  }
  class Analog {
    declare readonly resolution: number;
    declare private readonly pin: string;
    constructor({ pin }: IoOptions) {
      this.pin = nameOf(pin);
      this.resolution = 12;
    }
    read(): number {
      return Math.round(read(this.pin) * 4095);
    }
    write(value: unknown): void {
      write(this.pin, Number(value) / 4095);
    }
    close(): void {}
  }
  class Bus {
    constructor() {
      Object.assign(this, bus());
    }
    read(count: number): ArrayBuffer {
      return new ArrayBuffer(typeof count === "number" ? count : 0);
    }
    close(): void {}
  }

  const globals: Record<string, unknown> = {
    Pin,
    digitalWrite,
    digitalRead,
    digitalPulse: (pin: unknown, value: unknown, ms: number): void => {
      digitalWrite(pin, value);
      setTimeout(() => digitalWrite(pin, value ? 0 : 1), ms);
    },
    analogRead: read,
    analogWrite: write,
    pinMode: (): void => undefined,
    getPinMode: (): string => "auto",
    setWatch,
    clearWatch: (id?: number): void => {
      if (id === undefined) watches.clear();
      else watches.delete(id);
    },
    getTime: (): number => Date.now() / 1000,
    getSerial: (): string => device.id,
    print: (...parts: unknown[]): void => device.log(parts.map(String).join(" ")),
    trace: (text: string): void => device.log(String(text).trimEnd()),
    E: {
      getTemperature: (): number => 20,
      getBattery: (): number => 100,
      getAnalogVRef: (): number => 3.3,
      hwRand: (): number => Math.floor(device.random() * 2 ** 32) | 0,
    },
    device: {
      io: { Digital, Analog, PWM: Analog, I2C: Bus, SMBus: Bus, SPI: Bus, Serial: Bus },
      pin: { led: "LED1", button: "BTN1" },
    },
  };
  const pins = ["LED", "BTN"];
  for (let n = 0; n < 40; n++) {
    pins.push(`D${n}`);
    if (n < 16) pins.push(`A${n}`, `B${n}`, `C${n}`);
    if (n > 0 && n < 6) pins.push(`LED${n}`, `BTN${n}`);
    if (n > 0 && n < 4) {
      globals[`I2C${n}`] = bus();
      globals[`SPI${n}`] = bus();
      globals[`Serial${n}`] = serial();
    }
  }
  for (const name of pins) globals[name] = new Pin(name);
  return globals;
};
