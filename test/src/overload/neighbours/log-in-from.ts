/** A login from an address of this machine's own, which `fetch` cannot choose. */
import { request } from "node:http";

/** Its status; 0: it was cut. */
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
