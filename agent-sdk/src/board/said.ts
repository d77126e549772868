/** What a board prints, as text to be shown. Pure. */

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** A byte string as UTF-8; where that is impossible, as it is. Colours and the like are dropped. */
export const textOf = (said: string): string => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  const plain = said.replace(/\x1b\[[0-9;]*[A-Za-z]|[\0-\x08\x0b-\x1f\x7f]/g, "");
  try {
    return utf8.decode(Uint8Array.from(plain, (byte) => byte.charCodeAt(0)));
  } catch {
    return plain;
  }
};
