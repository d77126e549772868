/** Reads what each name stands for once, for all who ask; what failed is read again. */
export const onceByName = <T>(
  read: (name: string) => Promise<T>,
): ((name: string) => Promise<T>) => {
  const kept = new Map<string, Promise<T>>();
  return (name) => {
    const known = kept.get(name);
    if (known !== undefined) return known;
    const reading = read(name);
    reading.catch(() => kept.delete(name));
    kept.set(name, reading);
    return reading;
  };
};
