/** A login from a given local address, which `fetch` cannot choose. */
import { request } from "node:http";

/** The status; 0: the connection was lost. */
export const logInFrom = (url: string, localAddress: string, body: object): Promise<number> =>
  new Promise((resolve) => {
    const asked = request(
      `${url}/api/v1/auth/login`,
      {
        method: "POST",
        localAddress,
        agent: false,
        headers: { "content-type": "application/json" },
      },
      (answer) => {
        answer.resume();
        answer.on("end", () => resolve(answer.statusCode ?? 0));
      },
    );
    asked.on("error", () => resolve(0));
    asked.end(JSON.stringify(body));
  });
