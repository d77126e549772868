/**
 * Selectors choose agents: `label.site=hall-7,firmware<1.5.0`. All conditions must hold. The relay
 * answers lists by them, and commands take them as `--where`.
 */
import { isAbove, isVersionText } from "./releases.ts";

/** A list of labels is bounded, and so is what chooses by them. */
export const MAX_LABELS = 32;
export const LABEL_KEY_PATTERN = "^[a-z0-9._-]{1,63}$";
export const MAX_LABEL_LENGTH = 128;
/** Characters of a selector, and its conditions. */
export const MAX_SELECTOR_LENGTH = 2048;
export const MAX_CONDITIONS = 32;

export type Operator = "=" | "!=" | "~" | "<" | ">=";
export type SelectorKey = "id" | "name" | "runtime" | "firmware" | "online" | `label.${string}`;

export interface Condition {
  readonly key: SelectorKey;
  readonly operator: Operator;
  readonly value: string;
}
export type Selector = readonly Condition[];

/** A selector that is none; the message says which part, and what is expected. */
export class SelectorError extends Error {
  override readonly name = "SelectorError";
}

const KEYS = "id, name, runtime, firmware, online or label.KEY";
const CONDITION = /^(id|name|runtime|firmware|online|label\.[a-z0-9._-]{1,63})(!=|>=|=|~|<)(.*)$/s;

const readCondition = (text: string): Condition => {
  const [, key, operator, value = ""] = CONDITION.exec(text) ?? [];
  if (key === undefined || operator === undefined) {
    const form = `each condition is ${KEYS}, then =, !=, ~, < or >=, then a value`;
    throw new SelectorError(`${JSON.stringify(text)} is no condition: ${form}`);
  }
  if ((operator === "<" || operator === ">=") && !isVersionText(value)) {
    const form = `${operator} compares versions, such as 1.5.0`;
    throw new SelectorError(`${JSON.stringify(value)} is no version: ${form}`);
  }
  if (key === "online" && !(/^!?=$/.test(operator) && /^(true|false)$/.test(value))) {
    throw new SelectorError(`${JSON.stringify(text)}: online is =true or =false`);
  }
  return { key: key as SelectorKey, operator: operator as Operator, value };
};

/** Throws a SelectorError. */
export const parseSelector = (text: string): Selector => {
  if (text.length > MAX_SELECTOR_LENGTH) {
    throw new SelectorError(`a selector has at most ${MAX_SELECTOR_LENGTH} characters`);
  }
  const parts = text.split(",");
  if (parts.length > MAX_CONDITIONS) {
    throw new SelectorError(`a selector has at most ${MAX_CONDITIONS} conditions`);
  }
  return parts.map(readCondition);
};

/** Whether `*` in the pattern stand for some characters of the text each. Takes linear time. */
export const matchesGlob = (pattern: string, text: string): boolean => {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return text === pattern;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
};

/** Whether a condition holds for a value; null: the agent has none. */
export const holds = ({ operator, value }: Condition, of: string | null): boolean => {
  if (operator === "!=") return of !== value;
  if (of === null) return false;
  if (operator === "=") return of === value;
  if (operator === "~") return matchesGlob(value, of);
  if (!isVersionText(of)) return false;
  return isAbove(value, of) === (operator === "<");
};

/** An agent as REST answers it. */
export interface Selectable {
  readonly agent_id: string;
  readonly name: string;
  readonly runtime: string | null;
  readonly firmware_version: string | null;
  readonly online: boolean;
  readonly labels: Readonly<Record<string, string>>;
}

const fieldOf = (agent: Selectable, key: SelectorKey): string | null => {
  if (key === "id") return agent.agent_id;
  if (key === "name") return agent.name;
  if (key === "runtime") return agent.runtime;
  if (key === "firmware") return agent.firmware_version;
  if (key === "online") return String(agent.online);
  const label = key.slice("label.".length);
  return Object.hasOwn(agent.labels, label) ? (agent.labels[label] ?? null) : null;
};

export const matchesSelector = (selector: Selector, agent: Selectable): boolean =>
  selector.every((condition) => holds(condition, fieldOf(agent, condition.key)));
