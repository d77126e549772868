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
const LABEL = "label.";
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

/** What does not change by itself: what an access key may choose agents by. */
export interface Labelled {
  readonly agent_id: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** An agent as REST answers it. */
export interface Selectable extends Labelled {
  readonly name: string;
  readonly runtime: string | null;
  readonly firmware_version: string | null;
  readonly online: boolean;
}

const labelOf = ({ labels }: Labelled, label: string): string | null =>
  Object.hasOwn(labels, label) ? (labels[label] ?? null) : null;

const fieldOf = (agent: Selectable, key: SelectorKey): string | null => {
  if (key === "id") return agent.agent_id;
  if (key === "name") return agent.name;
  if (key === "runtime") return agent.runtime;
  if (key === "firmware") return agent.firmware_version;
  if (key === "online") return String(agent.online);
  return labelOf(agent, key.slice(LABEL.length));
};

export const matchesSelector = (selector: Selector, agent: Selectable): boolean =>
  selector.every((condition) => holds(condition, fieldOf(agent, condition.key)));

/** What an access key may do. */
export const KEY_SCOPES = ["read", "call", "agents", "releases"] as const;
export type KeyScope = (typeof KEY_SCOPES)[number];

/**
 * The selector of an access key: by `id` and `label.KEY` alone, because a device claims its runtime
 * and firmware itself, and its presence changes. Throws a SelectorError.
 */
export const parseKeySelector = (text: string): Selector => {
  const selector = parseSelector(text);
  for (const { key } of selector) {
    if (key === "id" || key.startsWith(LABEL)) continue;
    throw new SelectorError(`${key}: an access key chooses agents by id and label.KEY only`);
  }
  return selector;
};

/** The same as `matchesSelector`, for the selector of an access key. */
export const matchesKeySelector = (selector: Selector, agent: Labelled): boolean =>
  selector.every((condition) => {
    const { key } = condition;
    const of = key === "id" ? agent.agent_id : labelOf(agent, key.slice(LABEL.length));
    return holds(condition, of);
  });
