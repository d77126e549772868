/** A command's answer goes to standard output, everything else to standard error. */

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
