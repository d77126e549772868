/** Labels as people type them. */
import { Failure } from "@blindrelay/protocol/command-line";
import { LABEL_KEY_PATTERN, MAX_LABEL_LENGTH } from "@blindrelay/protocol/selector";

const LABEL_KEY = new RegExp(LABEL_KEY_PATTERN);
const KEY_FORM = "a key is 1 to 63 of a-z, 0-9, dot, underscore and hyphen";

/** Throws a Failure (usage). */
export const readLabelKey = (key: string): string => {
  if (!LABEL_KEY.test(key)) throw new Failure("usage", `${JSON.stringify(key)}: ${KEY_FORM}`);
  // Readers of JSON refuse a body with it, the relay's too.
  if (key === "__proto__") throw new Failure("usage", `${key} cannot be a key: take another`);
  return key;
};

/** Of KEY=VALUE. Throws a Failure (usage). */
export const readLabel = (text: string): readonly [key: string, value: string] => {
  const [, key, value] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
  if (key === undefined || value === undefined) {
    throw new Failure(
      "usage",
      `${JSON.stringify(text)}: a label is KEY=VALUE, such as site=hall-7`,
    );
  }
  if ([...value].length > MAX_LABEL_LENGTH) {
    const most = `at most ${MAX_LABEL_LENGTH} characters`;
    throw new Failure("usage", `the value of the label ${readLabelKey(key)} may have ${most}`);
  }
  return [readLabelKey(key), value];
};

/** As they are typed, one after another. */
export const labelsText = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join("  ");
