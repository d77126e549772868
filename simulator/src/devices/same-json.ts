/** Whether two values are the same JSON, whose objects have no order. */
export function sameJson(one: unknown, other: unknown): boolean {
  // Nearly always the order is the same too.
  return JSON.stringify(one) === JSON.stringify(other) || inOrder(one) === inOrder(other);
}

const inOrder = (value: unknown): string | undefined =>
  JSON.stringify(value, (_key, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
