/**
 * The console: one page that the relay serves and the browser runs. It shows what REST and the link
 * report, and calls agents through @blindrelay/client-sdk, which seals the calls here.
 */
import type { LoginAnswer } from "@blindrelay/protocol/schema/rest";
import { type JSX, render } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { AddDevice } from "./add-device.tsx";
import { AgentView } from "./agent.tsx";
import { Agents } from "./agents.tsx";
import { useModel, useWarning } from "./components.tsx";
import { Events } from "./events.tsx";
import { KeyringEntry } from "./keyring-entry.tsx";
import { Keys } from "./keys.tsx";
import { Login } from "./login.tsx";
import { Model } from "./model.ts";
import { Audit, Releases } from "./releases-and-audit.tsx";
import type { Trouble } from "./rest.ts";
import type { FoundSecret } from "./secret-file.ts";

interface Left {
  readonly secret: FoundSecret;
  /** The user whose login made it: another one cannot see the agent. */
  readonly owner: string;
}
type Secrets = ReadonlyMap<string, Left>;

const App = (): JSX.Element => {
  const [model, setModel] = useState<Model | null>(null);
  const [notice, setNotice] = useState<Trouble | null>(null);
  /** Of logins that have ended: they were made in this page. */
  const [left, setLeft] = useState<Secrets>(new Map());
  const [kept, setKept] = useState<readonly string[]>([]);
  const unkept = [...left].filter(([agentId]) => !kept.includes(agentId));
  useWarning(unkept.length > 0);
  const leave = (why: Trouble | null) => {
    setNotice(why);
    setModel(null);
  };
  if (model === null) {
    const start = (login: LoginAnswer) => {
      const owner = login.user.id;
      return Model.start(login, leave, (found) => {
        const more = [...found].map(([agentId, secret]) => [agentId, { secret, owner }] as const);
        setLeft((before) => new Map([...before, ...more]));
      });
    };
    const entered = (next: Model) => {
      const others = unkept.filter(([, { owner }]) => owner !== next.user.id);
      for (const [agentId, { secret, owner }] of unkept)
        if (owner === next.user.id) next.addMade(agentId, secret);
      setLeft(new Map(others));
      setKept([]);
      setModel(next);
    };
    return (
      <Login notice={notice} start={start} entered={entered}>
        <LeftSecrets left={left} keep={(agentId) => setKept([...kept, agentId])} />
      </Login>
    );
  }
  const logOut = () => {
    if (!mayLeave(model)) return;
    const lost = [...model.unkept].join(", ");
    if (lost && !confirm(`The secret of ${lost} is in this page only. Log out all the same?`))
      return;
    void model.stop();
    leave(null);
  };
  return <Console model={model} logOut={logOut} />;
};

const LeftSecrets = (props: {
  left: Secrets;
  keep: (agentId: string) => void;
}): JSX.Element | null => {
  const { left, keep } = props;
  if (left.size === 0) return null;
  return (
    <section aria-labelledby="left">
      <h2 id="left">Keep what this page has made</h2>
      <p>The login has ended, and these secrets were nowhere but here and on their devices.</p>
      {[...left].map(([agentId, { secret }]) => (
        <section key={agentId} aria-label={agentId}>
          <h3>{agentId}</h3>
          <KeyringEntry agentId={agentId} secret={secret} kept={() => keep(agentId)} />
        </section>
      ))}
    </section>
  );
};

/** Asks whoever would leave a board half-written. */
const mayLeave = (model: Model): boolean =>
  model.settingUp === 0 ||
  confirm("The board is being set up. Stop that, and leave it half-written?");

const usePath = (model: Model): string => {
  const read = () => location.hash.replace(/^#\/?/, "");
  const [path, setPath] = useState(read);
  const shown = useRef(path);
  useLayoutEffect(() => {
    const changed = () => {
      if (read() === shown.current) return;
      if (!mayLeave(model)) {
        location.hash = `#/${shown.current}`;
        return;
      }
      shown.current = read();
      setPath(shown.current);
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return path;
};

const Console = ({ model, logOut }: { model: Model; logOut: () => void }): JSX.Element => {
  useModel(model);
  useWarning(model.unkept.size > 0);
  const path = usePath(model);
  const sections = ["agents", "events", "releases", "keys"];
  if (model.user.role === "admin") sections.push("audit");
  const [section = "", agentId] = path.split("/");
  const here = sections.includes(section) ? section : "agents";
  const link = (name: string) => (
    <a href={`#/${name}`} aria-current={name === here ? "page" : undefined}>
      {name[0]?.toUpperCase()}
      {name.slice(1)}
    </a>
  );
  const online = model.link.state === "online";
  return (
    <>
      <a class="skip" href="#content" onClick={skip}>
        Skip to the content
      </a>
      <header>
        <span class="brand">blindrelay</span>
        <nav aria-label="Sections">{sections.map(link)}</nav>
        <div class="who">
          <span role="status">{online ? "live" : "connecting…"}</span>
          <span>{model.user.username}</span>
          <button type="button" onClick={logOut}>
            Log out
          </button>
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        <View
          key={path}
          model={model}
          here={section === "add" ? section : here}
          agentId={here === "agents" ? agentId : undefined}
        />
      </main>
      <div role="status" class="unseen">
        {model.announcement}
      </div>
    </>
  );
};

/** Not left to the link itself: what follows # selects the view. */
const skip = (event: Event) => {
  event.preventDefault();
  document.getElementById("content")?.focus();
};

/** What people type or paste after # need not be one. */
const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

const View = (props: { model: Model; here: string; agentId: string | undefined }): JSX.Element => {
  const { model, here, agentId } = props;
  if (here === "add") return <AddDevice model={model} />;
  if (here === "events") return <Events model={model} />;
  if (here === "releases") return <Releases model={model} />;
  if (here === "keys") return <Keys model={model} />;
  if (here === "audit") return <Audit model={model} />;
  if (agentId !== undefined && agentId !== "") {
    return <AgentView model={model} agentId={decoded(agentId)} />;
  }
  return <Agents model={model} />;
};

// No form of the page is sent by the browser: its view does that.
addEventListener("submit", (event) => event.preventDefault());
render(<App />, document.getElementById("console") as HTMLElement);
