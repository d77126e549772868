/**
 * The first login on a relay that requires a second factor: an authenticator gets its secret, the
 * user proves it, and the recovery codes are shown once.
 */
import type { TotpEnrollAnswer } from "@blindrelay/protocol/schema/rest";
import { Fragment, type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Heading, Input, TroubleBox, useAction, useWarning } from "./components.tsx";
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
  useWarning(recovery !== null);
  useEffect(() => {
    restOf(token).ask("TotpEnrollAnswer", "POST", "/auth/totp/enroll").then(setMade, setTrouble);
  }, [token]);

  const confirm = async (code: string): Promise<void> => {
    const body = { totp_code: code };
    const path = "/auth/totp/confirm";
    const { recovery_codes } = await restOf(token).ask("TotpConfirmAnswer", "POST", path, body);
    setRecovery(recovery_codes);
  };

  return (
    <main class="narrow" id="content">
      <TroubleBox trouble={trouble} />
      {recovery !== null ? (
        <Fragment key="recovery">
          <Heading>Keep your recovery codes</Heading>
          <p>
            Each works once in place of a code. Keep them apart from your authenticator: they are
            not shown again.
          </p>
          <ul class="codes" aria-label="Recovery codes">
            {recovery.map((code) => (
              <li key={code}>
                <code>{code}</code>
              </li>
            ))}
          </ul>
          <CodeForm
            label="The next code"
            hint="A code works only once: wait until your app shows another."
            button="Log in"
            submit={logIn}
          />
        </Fragment>
      ) : (
        made !== null && (
          <Fragment key="secret">
            <Heading>Set up your second factor</Heading>
            <p>
              {"This relay requires two factors. Type this secret into your authenticator app, or "}
              <a href={made.otpauth_uri}>open it in an app on this device</a>.
            </p>
            <p>
              <code class="secret">{made.secret}</code>
            </p>
            <CodeForm
              label="The code that it shows"
              hint="Six digits."
              button="Confirm"
              submit={confirm}
            />
          </Fragment>
        )
      )}
    </main>
  );
};

const CodeForm = (props: {
  label: string;
  hint: string;
  button: string;
  submit: (code: string) => Promise<void>;
}): JSX.Element => {
  const { label, hint, button, submit } = props;
  const { busy, trouble, act } = useAction();
  const onSubmit = (event: SubmitEvent) => {
    const form = event.currentTarget as HTMLFormElement;
    const code = String(new FormData(form).get("code") ?? "").replaceAll(" ", "");
    void act(
      () => submit(code),
      () => form.reset(),
    ); // a code works only once
  };
  return (
    <form onSubmit={onSubmit}>
      <TroubleBox trouble={trouble} />
      <Input
        id="code"
        label={label}
        hint={hint}
        name="code"
        autocomplete="one-time-code"
        inputMode="numeric"
        required
      />
      <button type="submit" class="primary" disabled={busy}>
        {busy ? "…" : button}
      </button>
    </form>
  );
};
