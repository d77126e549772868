/** Runs on the chip, in place of the Moddable SDK's `timer`: any number of timers on one alarm. */
interface Timer {
  readonly due: number;
  readonly fn: () => void;
}

const pending = new Set<Timer>();

const arm = (): void => {
  const now = chip.now();
  let next = -1;
  for (const { due } of pending) {
    const left = Math.max(0, (due - now) | 0);
    if (next < 0 || left < next) next = left;
  }
  chip.alarm(next);
};

globalThis.onAlarm = () => {
  const now = chip.now();
  for (const timer of [...pending]) {
    if (((timer.due - now) | 0) > 0 || !pending.delete(timer)) continue;
    timer.fn();
  }
  arm();
};

const set = (fn: () => void, ms = 0): Timer => {
  const timer = { due: (chip.now() + (ms | 0)) | 0, fn };
  pending.add(timer);
  arm();
  return timer;
};

const clear = (timer: unknown): void => {
  if (pending.delete(timer as Timer)) arm();
};

export default { set, clear };
