/**
 * The console: one page that the relay serves and the browser runs. It shows what REST and the link
 * report, and calls agents through @blindrelay/client-sdk, which seals the calls here.
 */
import type { LoginAnswer } from "@blindrelay/protocol/schema/rest";
import { Fragment, h, type JSX, render } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { AgentView } from "./agent.ts";
import { Agents } from "./agents.ts";
import { useModel } from "./components.ts";
import { Events } from "./events.ts";
import { Login } from "./login.ts";
import { Model } from "./model.ts";
import { Audit, Releases } from "./releases-and-audit.ts";
import type { Trouble } from "./rest.ts";

const App = (): JSX.Element => {
  const [model, setModel] = useState<Model | null>(null);
  const [notice, setNotice] = useState<Trouble | null>(null);
  const leave = (why: Trouble | null) => {
    setNotice(why);
    setModel(null);
  };
  if (model === null) {
    const start = (login: LoginAnswer) => Model.start(login, leave);
    return h(Login, { notice, start, entered: setModel });
  }
  const logOut = () => {
    void model.stop();
    leave(null);
  };
  return h(Console, { model, logOut });
};

const usePath = (): string => {
  const read = () => location.hash.replace(/^#\/?/, "");
  const [path, setPath] = useState(read);
  useLayoutEffect(() => {
    const changed = () => setPath(read());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return path;
};

const Console = ({ model, logOut }: { model: Model; logOut: () => void }): JSX.Element => {
  useModel(model);
  const path = usePath();
  const sections = ["agents", "events", "releases"];
  if (model.user.role === "admin") sections.push("audit");
  const [section = "", agentId] = path.split("/");
  const here = sections.includes(section) ? section : "agents";
  const link = (name: string) =>
    h(
      "a",
      { href: `#/${name}`, "aria-current": name === here ? "page" : undefined },
      name[0]?.toUpperCase(),
      name.slice(1),
    );
  const online = model.link.state === "online";
  return h(
    Fragment,
    null,
    h("a", { class: "skip", href: "#content", onClick: skip }, "Skip to the content"),
    h(
      "header",
      null,
      h("span", { class: "brand" }, "blindrelay"),
      h("nav", { "aria-label": "Sections" }, sections.map(link)),
      h(
        "div",
        { class: "who" },
        h("span", { role: "status" }, online ? "live" : "connecting…"),
        h("span", null, model.user.username),
        h("button", { type: "button", onClick: logOut }, "Log out"),
      ),
    ),
    h(
      "main",
      { id: "content", tabIndex: -1 },
      h(View, { key: path, model, here, agentId: here === "agents" ? agentId : undefined }),
    ),
    h("div", { role: "status", class: "unseen" }, model.announcement),
  );
};

/** Not left to the link itself: what follows # selects the view. */
const skip = (event: Event) => {
  event.preventDefault();
  document.getElementById("content")?.focus();
};

const View = (props: { model: Model; here: string; agentId: string | undefined }): JSX.Element => {
  const { model, here, agentId } = props;
  if (here === "events") return h(Events, { model });
  if (here === "releases") return h(Releases, { model });
  if (here === "audit") return h(Audit, { model });
  if (agentId !== undefined && agentId !== "") {
    return h(AgentView, { model, agentId: decodeURIComponent(agentId) });
  }
  return h(Agents, { model });
};

render(h(App, null), document.getElementById("console") as HTMLElement);
