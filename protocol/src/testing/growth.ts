/** Whether the cost of what a peer sends grows with its length alone. */

const RUNS = 5;
const TRIES = 5;
const TIMES = 16;

/** Between a linear growth, 16, and a quadratic one, 256. */
export const LINEAR = 64;

const timeOf = (work: () => void): number => {
  const startedAt = performance.now();
  work();
  return performance.now() - startedAt;
};

const measured = (little: () => void, much: () => void): number => {
  let [ofLittle, ofMuch] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  const often = (): void => {
    for (let time = 0; time < TIMES; time++) little();
  };
  for (let run = 0; run < RUNS; run++) {
    ofLittle = Math.min(ofLittle, timeOf(often));
    ofMuch = Math.min(ofMuch, timeOf(much));
  }
  return (ofMuch / ofLittle) * TIMES;
};

/**
 * How many times as long the work takes for 16 times as much, `n` and `16 * n`: below LINEAR if it
 * is linear. `prepare` is not measured. The quickest runs count, and what is too much is measured
 * again, because others use this machine; and the little is done 16 times in a row, because they
 * interrupt what takes longer more often.
 */
export const growth = (n: number, prepare: (n: number) => () => void): number => {
  const [little, much] = [prepare(n), prepare(TIMES * n)];
  let grown = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < TRIES && grown >= LINEAR; tries++) {
    grown = Math.min(grown, measured(little, much));
  }
  return grown;
};
