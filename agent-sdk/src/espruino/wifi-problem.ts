/**
 * A problem reported by a Wi-Fi driver, in one sentence and without the password. The texts are
 * those of ESP-IDF, of the ESP8266's SDK and of its AT firmware, which may repeat the command with
 * the password as written by `JSON.stringify`.
 *
 * [portable]
 */

/** `name`: such as `Wi-Fi "hall 7"`. `password`: "" for an open network. */
export const wifiProblem = (name: string, password: string, said: string): string => {
  const quoted = JSON.stringify(password);
  let problem = said;
  if (password !== "")
    // Espruino 2v29 splits a text into nothing if the separator is two characters longer.
    for (const form of [quoted.substring(1, quoted.length - 1), password])
      if (problem.indexOf(form) >= 0) problem = problem.split(form).join("...");
  if (/PASSW|HANDSHAKE|AUTH_FAIL|CWJAP:2/i.test(problem))
    return `${name} refuses the password (${problem}): provision this board with the right one`;
  if (/NO_AP|CWJAP:3/i.test(problem)) return `${name} is not in reach (${problem})`;
  return `${name} cannot be joined: ${problem}`;
};
