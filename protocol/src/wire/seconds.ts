/**
 * Times on the wire are whole or fractional seconds.
 *
 * [portable]
 */
import { own } from "../encoding/json.ts";

/** A field that holds a number of seconds, 0 or more; null if it is absent or invalid. */
export const ownSeconds = (fields: object, key: string): number | null => {
  const value = own(fields, key);
  return typeof value === "number" && value >= 0 ? value : null;
};
