/**
 * Replaces core/boot-seed.ts on a board, which has no X25519 and so no seeds.
 *
 * [portable]
 */
const same = (text: string): string => text;

export const ownerOf = (parts: readonly string[]): string | undefined => parts[3];

export const hashOf = same;

export const formatOf = (): number => 1;

export const seedOf = (): undefined => undefined;

export const withSeed = same;

export const nextOwner = (): null => null;
