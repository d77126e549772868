/**
 * The result of every reader for a message that is not a JSON object, lacks a field of its type, or
 * has an unknown type: a future one, or one for the other side.
 *
 * [portable]
 */
export interface Unreadable {
  readonly kind: "unreadable";
}

export interface Unknown {
  readonly kind: "unknown";
}

export const UNREADABLE: Unreadable = { kind: "unreadable" };
export const UNKNOWN: Unknown = { kind: "unknown" };
