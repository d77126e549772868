/** The REST client for commands: its failures have exit codes, and fixes for the command line. */
import { type RestError, type RestLimits, Rest as SdkRest } from "@blindrelay/client-sdk/rest";
import { Failure, type FailureKind } from "@blindrelay/protocol/command-line";
import { oneLine } from "./output.ts";

const KINDS: { readonly [code: string]: FailureKind } = {
  UNTRUSTED_SIGNATURE: "refused", // the request is well-formed; the relay does not accept this key
  TIMED_OUT: "timeout",
  UNREACHABLE: "unreachable",
  NOT_A_RELAY: "unreachable",
  IDEMPOTENCY_KEY_IN_USE: "unreachable", // a relay that broke off may have done it
};

const KINDS_BY_STATUS: { readonly [status: number]: FailureKind } = {
  400: "usage",
  401: "refused",
  403: "refused",
  404: "refused",
  409: "refused",
  422: "usage",
  429: "refused",
};

/** The relay's own answer. */
export class RestFailure extends Failure {
  readonly code: string;

  constructor(kind: FailureKind, message: string, { code }: RestError) {
    super(kind, message);
    this.code = code;
  }
}

/** It was not executed, for sure: a relay whose store was away may have done it. */
export const isRefused = (error: unknown): error is RestFailure =>
  error instanceof RestFailure && error.kind !== "unreachable";

export class Rest extends SdkRest {
  private readonly hasToken: boolean;

  /** `url`: the relay's http(s) base. `token`: null before logging in. */
  constructor(url: string, token: string | null, limits: Partial<RestLimits> = {}) {
    super({ url, token, limits });
    this.hasToken = token !== null;
  }

  protected override fail(error: RestError): Failure {
    const { code, status } = error;
    const message = oneLine(error.message);
    const own = Object.hasOwn(KINDS, code) ? KINDS[code] : undefined;
    const kind = own ?? KINDS_BY_STATUS[status] ?? "unreachable";
    if (["TIMED_OUT", "UNREACHABLE", "NOT_A_RELAY"].includes(code)) {
      return new Failure(kind, message, error);
    }
    // If credentials in the body are wrong, the token is not at fault.
    const isToken = status === 401 && this.hasToken && code !== "INVALID_CREDENTIALS";
    const fix = "; fix: blindrelay login gives you a new token (or set BLINDRELAY_ACCOUNT_TOKEN)";
    return new RestFailure(kind, isToken ? message.replace(/\.?$/, fix) : message, error);
  }
}
