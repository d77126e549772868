/** An address as a QR code for a phone's camera. */
import { renderUnicodeCompact } from "uqr";

/** White on black whatever the terminal's colours are: the white modules are what is drawn. */
const LIT = "\u001b[97;40m";
const AS_BEFORE = "\u001b[0m";

/**
 * "" for no text, and where there is no terminal, or one without colours, which might show the
 * negative.
 */
export const qrCodeFor = (
  text: string,
  output: { readonly isTTY?: boolean } = process.stderr,
  term = process.env.TERM ?? "",
): string => {
  if (text === "" || output.isTTY !== true || term === "" || term === "dumb") return "";
  const lines = renderUnicodeCompact(text, { border: 2 }).split("\n");
  return lines.map((line) => `${LIT}${line}${AS_BEFORE}`).join("\n");
};

/** Shows it to the person at the terminal, where there is one. */
export const showQrCode = (text: string): void => {
  const code = qrCodeFor(text);
  if (code !== "") process.stderr.write(`${code}\n`);
};
