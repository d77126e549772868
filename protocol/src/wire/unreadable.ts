/**
 * What every reader says of a message that is no JSON object, or lacks what its type wants; and of
 * one whose type means nothing to it: a type of the future, or one that is meant for another side.
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
