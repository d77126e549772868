/**
 * Whether a valid JSON text has more levels, one in another, than `most`: whatever writes or copies
 * the value calls itself for each, and would run out of stack.
 */
export const isTooDeep = (text: string, most: number): boolean => {
  let level = 0;
  let inText = false;
  // Each level has two brackets.
  for (let i = 0; i < text.length && text.length > 2 * most; i++) {
    const char = text[i];
    if (inText && char === "\\") i++;
    else if (char === '"') inText = !inText;
    else if (!inText && (char === "[" || char === "{")) level++;
    else if (!inText && (char === "]" || char === "}")) level--;
    if (level > most) return true;
  }
  return false;
};
