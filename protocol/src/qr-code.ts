/** An address as a QR code in a terminal, for a phone's camera. */

/** White on black whatever the terminal's colours are: the white modules are what is drawn. */
const LIT = "\u001b[97;40m";
const AS_BEFORE = "\u001b[0m";

/**
 * "" for no text, and where there is no terminal, or one without colours (`term`, the variable
 * TERM), which might show the negative. `draw`: with half blocks (`uqr`).
 */
export const qrCodeFor = (
  draw: (text: string, options: { readonly border: number }) => string,
  text: string,
  output: { readonly isTTY?: boolean },
  term: string | undefined,
): string => {
  if (!text || output.isTTY !== true || !term || term === "dumb") return "";
  const lines = draw(text, { border: 2 }).split("\n");
  return lines.map((line) => `${LIT}${line}${AS_BEFORE}`).join("\n");
};
