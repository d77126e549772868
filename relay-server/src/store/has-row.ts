/** Whether a statement finds, adds, changes or removes a row. */
export const hasRow = async (statement: {
  executeTakeFirst(): Promise<unknown>;
}): Promise<boolean> => (await statement.executeTakeFirst()) !== undefined;
