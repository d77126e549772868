/**
 * Makes `each` calls to each of `members`, at most `atOnce` at a time, one at a time to each, all
 * in turn. `call` gets the member's index, and what to call when its call has ended.
 */
export function callInTurn(
  { members, each, atOnce }: { members: number; each: number; atOnce: number },
  call: (member: number, ended: () => void) => void,
): void {
  const left = new Array<number>(members).fill(each);
  const waiting = left.map((_, member) => member);
  const next = (): void => {
    const member = waiting.shift();
    if (member === undefined) return;
    const more = (left[member] as number) - 1;
    left[member] = more;
    call(member, () => {
      if (more > 0) waiting.push(member);
      next();
    });
  };
  for (let n = 0; n < Math.min(atOnce, members); n++) next();
}
