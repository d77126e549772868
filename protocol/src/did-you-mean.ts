/** Suggestions for names that a person mistyped: agents, methods, members of a scenario. */

/** A typing error changes few characters, and leaves most of a name. */
const MAX_EDITS = 2;

/** The number of characters to insert, delete or replace to make `b` of `a`. */
const edits = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
};

/** ` (did you mean "count"?)` for the most similar of `known`, or "". */
export const didYouMean = (text: string, known: readonly string[]): string => {
  let best: string | null = null;
  let least = Math.min(MAX_EDITS + 1, text.length / 2);
  for (const name of known) {
    if (Math.abs(name.length - text.length) > MAX_EDITS) continue;
    const distance = edits(text.toLowerCase(), name.toLowerCase());
    if (distance >= least) continue;
    [best, least] = [name, distance];
  }
  return best === null ? "" : ` (did you mean "${best}"?)`;
};
