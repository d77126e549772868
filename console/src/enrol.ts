/**
 * The first login on a relay that requires a second factor: an authenticator gets its secret, the
 * user proves it, and the recovery codes are shown once.
 */
import type { TotpEnrollAnswer } from "@blindrelay/protocol/schema/rest";
import { Fragment, h, type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Field, Heading, TroubleBox } from "./components.ts";
import { troubleOfCall } from "./model.ts";
import { restOf, type Trouble } from "./rest.ts";

interface Props {
  /** The result of the login without a second factor. */
  readonly token: string;
  /** Logs in with a code; rejects with a Trouble. */
  readonly logIn: (code: string) => Promise<void>;
}

export const Enrol = ({ token, logIn }: Props): JSX.Element => {
  const [made, setMade] = useState<TotpEnrollAnswer | null>(null);
  const [recovery, setRecovery] = useState<readonly string[] | null>(null);
  const [trouble, setTrouble] = useState<Trouble | null>(null);
  useEffect(() => {
    restOf(token).ask("TotpEnrollAnswer", "POST", "/auth/totp/enroll").then(setMade, setTrouble);
  }, [token]);

  const confirm = async (code: string): Promise<void> => {
    const body = { totp_code: code };
    const path = "/auth/totp/confirm";
    const { recovery_codes } = await restOf(token).ask("TotpConfirmAnswer", "POST", path, body);
    setRecovery(recovery_codes);
  };

  return h(
    "main",
    { class: "narrow", id: "content" },
    h(TroubleBox, { trouble }),
    recovery !== null
      ? h(
          Fragment,
          { key: "recovery" },
          h(Heading, null, "Keep your recovery codes"),
          h(
            "p",
            null,
            "Each works once in place of a code. Keep them apart from your authenticator: they are not shown again.",
          ),
          h(
            "ul",
            { class: "codes", "aria-label": "Recovery codes" },
            recovery.map((code) => h("li", { key: code }, h("code", null, code))),
          ),
          h(CodeForm, {
            label: "The next code",
            hint: "A code works only once: wait until your app shows another.",
            button: "Log in",
            submit: logIn,
          }),
        )
      : made !== null &&
          h(
            Fragment,
            { key: "secret" },
            h(Heading, null, "Set up your second factor"),
            h(
              "p",
              null,
              "This relay requires two factors. Type this secret into your authenticator app, or ",
              h("a", { href: made.otpauth_uri }, "open it in an app on this device"),
              ".",
            ),
            h("p", null, h("code", { class: "secret" }, made.secret)),
            h(CodeForm, {
              label: "The code that it shows",
              hint: "Six digits.",
              button: "Confirm",
              submit: confirm,
            }),
          ),
  );
};

const CodeForm = (props: {
  label: string;
  hint: string;
  button: string;
  submit: (code: string) => Promise<void>;
}): JSX.Element => {
  const { label, hint, button, submit } = props;
  const [trouble, setTrouble] = useState<Trouble | null>(null);
  const [busy, setBusy] = useState(false);
  const onSubmit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const code = String(new FormData(form).get("code") ?? "").replaceAll(" ", "");
    setBusy(true);
    setTrouble(null);
    try {
      await submit(code);
    } catch (error) {
      setTrouble(troubleOfCall(error));
      setBusy(false);
      form.reset(); // a code works only once
    }
  };
  return h(
    "form",
    { onSubmit },
    h(TroubleBox, { trouble }),
    h(
      Field,
      { id: "code", label, hint },
      h("input", {
        id: "code",
        name: "code",
        autocomplete: "one-time-code",
        inputMode: "numeric",
        required: true,
        "aria-describedby": "code-hint",
      }),
    ),
    h("button", { type: "submit", class: "primary", disabled: busy }, busy ? "…" : button),
  );
};
