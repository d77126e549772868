/** Prints lines above the prompt while the user types, and redraws the typed text below them. */
import { clearScreenDown, cursorTo, type Interface, moveCursor } from "node:readline";

/**
 * Removes prompt and typed text from the screen, lets `print` write whole lines, and draws both
 * again with the cursor where it was. On a terminal that cannot move its cursor they are drawn on
 * new lines. `output`: the terminal that `prompt` writes to.
 */
export const printAbove = (
  prompt: Interface,
  output: NodeJS.WritableStream,
  print: () => void,
): void => {
  if (process.env.TERM === "dumb") {
    output.write("\n");
    print();
    prompt.prompt(true);
    output.write(prompt.line);
    return;
  }
  const { rows } = prompt.getCursorPos();
  cursorTo(output, 0);
  moveCursor(output, 0, -rows);
  clearScreenDown(output);
  print();
  // Before redrawing, readline moves up by as many rows as it last drew.
  output.write("\n".repeat(rows));
  prompt.prompt(true);
};
