/**
 * The text of a body or a part of one; null if JSON.stringify exceeds the stack: for a key `toJSON`
 * it recurses, and JSON.parse does not.
 */
export const jsonText = (value: unknown): string | null => {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
};
