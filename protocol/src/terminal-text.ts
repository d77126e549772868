/** Text from others, on its way to a terminal. Node and browsers. */

/**
 * What controls a terminal or reverses its text (Unicode's bidirectional controls): all control
 * characters except the line end.
 */
export const STEERING =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** The text with each of those replaced by U+FFFD. */
export const harmless = (text: string): string => text.replace(STEERING, "\ufffd");
