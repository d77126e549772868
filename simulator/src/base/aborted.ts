/** Waiting for an AbortSignal. */

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done();
    signal.addEventListener("abort", () => done(), { once: true });
  });
}

/** Aborts `ms` after `signal` does. */
export function abortedAfter(signal: AbortSignal, ms: number): AbortSignal {
  const late = new AbortController();
  aborted(signal).then(() => setTimeout(() => late.abort(signal.reason), ms).unref());
  return late.signal;
}
