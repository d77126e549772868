/** The way in: name, password and one-time code. */
import type { AuthConfig, LoginAnswer } from "@blindrelay/protocol/schema/rest";
import { h, type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Live, troubleOfCall } from "./live.ts";
import { Field, Heading, TroubleBox } from "./parts.ts";
import { ask, Trouble } from "./rest.ts";

interface Props {
  /** Why the page before ended, where one did. */
  readonly notice: Trouble | null;
  readonly start: (login: LoginAnswer) => Promise<Live>;
  readonly entered: (live: Live) => void;
}

export const Login = ({ notice, start, entered }: Props): JSX.Element => {
  const [trouble, setTrouble] = useState(notice);
  const [busy, setBusy] = useState(false);
  const [config, setConfig] = useState<AuthConfig | null>(null);
  useEffect(() => {
    ask<AuthConfig>("auth/config").then(setConfig, setTrouble);
  }, []);

  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    setBusy(true);
    setTrouble(null);
    try {
      entered(await start(await logIn(new FormData(form))));
    } catch (error) {
      setTrouble(troubleOfCall(error));
      setBusy(false);
      const code = form.elements.namedItem("code") as HTMLInputElement;
      code.value = ""; // it is good once
    }
  };

  const must = config?.totp === "required";
  return h(
    "main",
    { class: "narrow", id: "content" },
    h(Heading, null, "Log in"),
    h(
      "p",
      null,
      "Look at your agents, and call them. The relay routes what you say and cannot read it: calls are sealed in this page.",
    ),
    h(TroubleBox, { trouble }),
    h(
      "form",
      { onSubmit: submit },
      h(
        Field,
        { id: "username", label: "User name" },
        h("input", {
          id: "username",
          name: "username",
          autocomplete: "username",
          autocapitalize: "none",
          spellcheck: false,
          required: true,
        }),
      ),
      h(
        Field,
        { id: "password", label: "Password" },
        h("input", {
          id: "password",
          name: "password",
          type: "password",
          autocomplete: "current-password",
          required: true,
        }),
      ),
      h(
        Field,
        {
          id: "code",
          label: must ? "One-time code" : "One-time code, if you have set one up",
          hint: "Six digits from your authenticator app, or a recovery code.",
        },
        h("input", {
          id: "code",
          name: "code",
          autocomplete: "one-time-code",
          autocapitalize: "none",
          spellcheck: false,
          "aria-describedby": "code-hint",
        }),
      ),
      h("button", { type: "submit", class: "primary", disabled: busy }, busy ? "…" : "Log in"),
    ),
    config && h("p", { class: "faint" }, `blindrelay ${config.version}`),
  );
};

const logIn = async (form: FormData): Promise<LoginAnswer> => {
  const field = (name: string): string => String(form.get(name) ?? "");
  const code = field("code").replaceAll(" ", "");
  const body = {
    username: field("username"),
    password: field("password"),
    ...(code === "" ? {} : { totp_code: code }),
  };
  const login = await ask<LoginAnswer>("auth/login", { method: "POST", body });
  if (login.user.api_token === null) {
    throw new Trouble(
      "This relay wants a second factor, and this account has none yet.",
      "Run `blindrelay login` once: it sets one up. Then log in here with its code.",
      "TOTP_ENROLMENT_REQUIRED",
    );
  }
  return login;
};
