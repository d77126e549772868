/**
 * `/auth/totp`: the second factor; the relay makes its secret and a code confirms it.
 */
import {
  TotpConfirmAnswer,
  TotpConfirmBody,
  TotpEnrollAnswer,
  TotpEnrollBody,
} from "@blindrelay/protocol/schema/rest";
import { Type } from "typebox";
import { confirmEnrolment, enrollTotp } from "../../control/account.ts";
import { type Access, failedAuthentication, refuseLockedOut, requires } from "../base/access.ts";
import type { App, HttpContext } from "../base/context.ts";
import { HttpProblem, invalidBody } from "../base/problem.ts";
import { changedMeanwhile, reauthenticate, userOf } from "./account.ts";

const ENROLLERS: Access = { holders: ["login"], beforeTotp: true };

export const totpRoutes = (app: App, context: HttpContext): void => {
  app.post(
    "/auth/totp/enroll",
    {
      onRequest: requires(context, ENROLLERS),
      config: { problems: ["INVALID_CREDENTIALS", "CONFLICT"] },
      schema: {
        summary: "Draw a TOTP secret",
        description:
          "It takes effect once a code confirms it. No body is needed for a first enrolment.",
        body: Type.Union([TotpEnrollBody, Type.Null(), Type.Undefined()]),
        response: { 200: TotpEnrollAnswer },
      },
    },
    async (request) => {
      const user = await userOf(context, request);
      if (user.totp_confirmed === 1) {
        const { current_password, totp_code } = request.body ?? {};
        if (current_password === undefined) {
          throw invalidBody("/current_password", "needed to replace an enrolment");
        }
        await reauthenticate(context, request, user, current_password, totp_code);
      }
      const drawn = await enrollTotp(context, user);
      if (drawn === null) throw changedMeanwhile();
      return { otpauth_uri: drawn.uri, secret: drawn.secret };
    },
  );

  app.post(
    "/auth/totp/confirm",
    {
      onRequest: requires(context, ENROLLERS),
      config: { problems: ["INVALID_CREDENTIALS", "CONFLICT"] },
      schema: {
        summary: "Confirm the drawn secret with a code",
        body: TotpConfirmBody,
        response: { 200: TotpConfirmAnswer },
      },
    },
    async (request) => {
      const user = await userOf(context, request);
      if (user.totp_pending === null) {
        throw new HttpProblem(
          "CONFLICT",
          "Nothing to confirm: POST /api/v1/auth/totp/enroll first.",
        );
      }
      refuseLockedOut(context, request);
      const codes = await confirmEnrolment(
        context,
        user,
        user.totp_pending,
        request.body.totp_code,
      );
      if (codes === null) {
        const detail = "That is not a code of the new secret.";
        throw failedAuthentication(context, request, "INVALID_CREDENTIALS", detail);
      }
      return { totp_enabled: true as const, recovery_codes: codes };
    },
  );
};
