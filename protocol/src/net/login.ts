/**
 * User and password in a URL, decoded; "" where there is none. A % in them may encode nothing, as
 * in a password that was pasted, beside what `URL` has encoded itself.
 */
export const loginOf = ({ username, password }: URL): { user: string; password: string } => ({
  user: decoded(username),
  password: decoded(password),
});

const decoded = (part: string): string =>
  part.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return escapes;
    }
  });
