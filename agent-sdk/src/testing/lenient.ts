/**
 * Espruino's JSON.parse sets the prototype for a member named `__proto__`; for one test, Node's
 * does too.
 */
import { vi } from "vitest";

const withPrototypes = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value;
  for (const [key, inner] of Object.entries(value)) {
    if (key === "__proto__") {
      Reflect.deleteProperty(value, key);
      Object.setPrototypeOf(value, inner as object);
    } else {
      (value as { [key: string]: unknown })[key] = withPrototypes(inner);
    }
  }
  return value;
};

/** Until the test ends: vitest restores mocks automatically. */
export const lenientJsonParse = (): void => {
  const strict = JSON.parse;
  vi.spyOn(JSON, "parse").mockImplementation((text) => withPrototypes(strict(text)));
};
