/** The relay's REST API, as used by the page. Tokens stay in this page's memory. */
import { fetchHttp, Rest, type RestError } from "@blindrelay/client-sdk/rest/core";
import { fixOf, waitText } from "./fixes.ts";

/** An error and its fix, both for a person. */
export class Trouble extends Error {
  readonly fix: string;
  readonly code: string;
  readonly status: number;

  constructor(message: string, fix: string, code: string, status = 0) {
    super(message);
    this.name = "Trouble";
    this.fix = fix;
    this.code = code;
    this.status = status;
  }
}

/** A slow relay is acceptable, a page that waits forever is not; nor one that waits unseen. */
const LIMITS = { answerMs: 20_000, retries: 0 };

/** Of the relay that served this page, so its answers need no more trust than the page itself. */
class PageRest extends Rest {
  constructor(token: string | null) {
    const url = new URL(".", document.baseURI).href;
    super({ url, token, limits: LIMITS }, { http: fetchHttp, check: async () => null });
  }

  protected override fail({ code, message, status, retryAfterS }: RestError): Trouble {
    if (code === "UNREACHABLE" || code === "TIMED_OUT") {
      return new Trouble("The relay does not answer.", fixOf("UNREACHABLE"), "UNREACHABLE");
    }
    if (code === "NOT_A_RELAY") {
      const fix = "Something between this page and the relay answers instead: check the proxy.";
      const what = status === 0 ? message : `An answer that is not the relay's (HTTP ${status}).`;
      return new Trouble(what, fix, "", status);
    }
    const fix = retryAfterS === null ? fixOf(code) : `Try again in ${waitText(retryAfterS)}.`;
    return new Trouble(message, fix, code, status);
  }
}

/** Requests of the page; they reject with a Trouble. `token`: null before the login. */
export const restOf = (token: string | null): Rest => new PageRest(token);
