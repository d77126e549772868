/** Limits of scenarios and of flags, apart from the schema, which is large to load. */
export const MAX_DEVICES = 100_000;
export const MAX_SEED = 2 ** 32 - 1;
/** Of one run. */
export const MAX_SEEDS = 10_000;
