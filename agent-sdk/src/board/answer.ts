/**
 * What a board answers, as what it should be: on a port may be anything, also what was made to
 * imitate a board and to harm whoever plugs it in.
 */
import { BoardFailure } from "./failure.ts";
import type { EspruinoRepl } from "./repl.ts";

export const isNumber = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value);
export const isText = (value: unknown): value is string => typeof value === "string";
/** Of a board, an agent or a port: it is shown in a line. */
export const isName = (value: unknown): value is string =>
  isText(value) && /^[ -~]{1,64}$/.test(value);
export const isList =
  <One>(is: (value: unknown) => value is One) =>
  (value: unknown): value is One[] =>
    Array.isArray(value) && value.every(is);

export const noAnswer = (board: EspruinoRepl): BoardFailure =>
  new BoardFailure("foreign", `${board.port.name}: something answers as no Espruino does`);

/**
 * The value of an expression. Rejects with a Failure (device), also for a value of another form.
 */
export const answerOf = async <Answer>(
  board: EspruinoRepl,
  is: (value: unknown) => value is Answer,
  expression: string,
): Promise<Answer> => {
  const value = await board.evaluate(expression);
  if (is(value)) return value;
  throw noAnswer(board);
};
