/**
 * The console: one page that the relay serves and the browser runs. It shows what REST and the link
 * report, and calls agents through @blindrelay/client-sdk, which seals the calls here.
 */
import type { LoginAnswer } from "@blindrelay/protocol/schema/rest";
import { Fragment, h, type JSX, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { AgentView } from "./agent.ts";
import { Agents } from "./agents.ts";
import { useLive } from "./components.ts";
import { Events } from "./events.ts";
import { Live } from "./live.ts";
import { Login } from "./login.ts";
import { Audit, Releases } from "./releases-and-audit.ts";
import type { Trouble } from "./rest.ts";

const App = (): JSX.Element => {
  const [live, setLive] = useState<Live | null>(null);
  const [notice, setNotice] = useState<Trouble | null>(null);
  const leave = (why: Trouble | null) => {
    setNotice(why);
    setLive(null);
  };
  if (live === null) {
    const start = (login: LoginAnswer) => Live.start(login, leave);
    return h(Login, { notice, start, entered: setLive });
  }
  const logOut = () => {
    void live.stop();
    leave(null);
  };
  return h(Console, { live, logOut });
};

const usePath = (): string => {
  const read = () => location.hash.replace(/^#\/?/, "");
  const [path, setPath] = useState(read);
  useEffect(() => {
    const changed = () => setPath(read());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return path;
};

const Console = ({ live, logOut }: { live: Live; logOut: () => void }): JSX.Element => {
  useLive(live);
  const path = usePath();
  const sections = ["agents", "events", "releases"];
  if (live.user.role === "admin") sections.push("audit");
  const [section = "", agentId] = path.split("/");
  const here = sections.includes(section) ? section : "agents";
  const link = (name: string) =>
    h(
      "a",
      { href: `#/${name}`, "aria-current": name === here ? "page" : undefined },
      name[0]?.toUpperCase(),
      name.slice(1),
    );
  const online = live.link.state === "online";
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
        h("span", null, live.user.username),
        h("button", { type: "button", onClick: logOut }, "Log out"),
      ),
    ),
    h(
      "main",
      { id: "content", tabIndex: -1 },
      h(View, { key: path, live, here, agentId: here === "agents" ? agentId : undefined }),
    ),
    h("div", { role: "status", class: "unseen" }, live.announcement),
  );
};

/** Not by the link itself: what follows # is the view. */
const skip = (event: Event) => {
  event.preventDefault();
  document.getElementById("content")?.focus();
};

const View = (props: { live: Live; here: string; agentId: string | undefined }): JSX.Element => {
  const { live, here, agentId } = props;
  if (here === "events") return h(Events, { live });
  if (here === "releases") return h(Releases, { live });
  if (here === "audit") return h(Audit, { live });
  if (agentId !== undefined && agentId !== "") {
    return h(AgentView, { live, agentId: decodeURIComponent(agentId) });
  }
  return h(Agents, { live });
};

render(h(App, null), document.getElementById("console") as HTMLElement);
