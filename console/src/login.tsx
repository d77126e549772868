/** The login: name, password and one-time code; an account without a second factor sets one up. */
import type { AuthConfig, LoginAnswer, LoginBody } from "@blindrelay/protocol/schema/rest";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Heading, Input, TroubleBox, useAction } from "./components.tsx";
import { Enrol } from "./enrol.tsx";
import type { Model } from "./model.ts";
import { restOf, type Trouble } from "./rest.ts";

interface Props {
  /** The reason why the previous session ended, if any. */
  readonly notice: Trouble | null;
  readonly start: (login: LoginAnswer) => Promise<Model>;
  readonly entered: (model: Model) => void;
  /** Above the form. */
  readonly children: ComponentChildren;
}

export const Login = ({ notice, start, entered, children }: Props): JSX.Element => {
  const { busy, trouble, setTrouble, act } = useAction(notice);
  const [enrolling, setEnrolling] = useState<Enrolling | null>(null);
  const [config, setConfig] = useState<AuthConfig | null>(null);
  useEffect(() => {
    restOf(null).ask("AuthConfig", "GET", "/auth/config").then(setConfig, setTrouble);
  }, []);

  const submit = (event: SubmitEvent) => {
    const form = event.currentTarget as HTMLFormElement;
    const enter = async () => {
      const given = givenIn(new FormData(form));
      const login = await restOf(null).logIn(given);
      if (login.user.api_token === null) setEnrolling({ given, token: login.access_token });
      else entered(await start(login));
    };
    void act(enter, () => {
      const code = form.elements.namedItem("code") as HTMLInputElement;
      code.value = ""; // a code works only once
    });
  };

  if (enrolling !== null) {
    const { given, token } = enrolling;
    const logInWith = async (code: string) =>
      entered(await start(await restOf(null).logIn({ ...given, totp_code: code })));
    return <Enrol token={token} logIn={logInWith} />;
  }
  const must = config?.totp === "required";
  return (
    <main class="narrow" id="content">
      <Heading>Log in</Heading>
      <p>
        See and call your agents. The relay forwards your calls and cannot read them: this page
        encrypts them.
      </p>
      <TroubleBox trouble={trouble} />
      {children}
      <form onSubmit={submit}>
        <Input
          id="username"
          label="User name"
          name="username"
          autocomplete="username"
          autocapitalize="none"
          required
        />
        <Input
          id="password"
          label="Password"
          name="password"
          type="password"
          autocomplete="current-password"
          required
        />
        <Input
          id="code"
          label={must ? "One-time code" : "One-time code, if you have set one up"}
          hint="Six digits from your authenticator app, or a recovery code."
          name="code"
          autocomplete="one-time-code"
          autocapitalize="none"
        />
        <button type="submit" class="primary" disabled={busy}>
          {busy ? "…" : "Log in"}
        </button>
      </form>
      {config && <p class="faint">{`blindrelay ${config.version}`}</p>}
    </main>
  );
};

/** Kept in this page's memory until the second factor is set up. */
interface Enrolling {
  readonly given: LoginBody;
  readonly token: string;
}

const givenIn = (form: FormData): LoginBody => {
  const field = (name: string): string => String(form.get(name) ?? "");
  const code = field("code").replaceAll(" ", "");
  const who = { username: field("username"), password: field("password") };
  return code === "" ? who : { ...who, totp_code: code };
};
