/**
 * "Add a device": a board at a port of this computer becomes an agent with a program. Secrets are
 * made here; the end-to-end secret and the Wi-Fi's password go to the board and nowhere else.
 */
import { relayUrl } from "@blindrelay/protocol/relay-url";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { bytesText } from "./agent.tsx";
import type { SystemInfo } from "./answers.ts";
import type { FirstError, Made, OpenBoard, SetUpTrouble } from "./board/main.ts";
import type { WebSerial } from "./board/web-serial.ts";
import { loadBoardCode } from "./board-code.ts";
import {
  type Fact,
  FactList,
  Field,
  FileInput,
  Heading,
  Input,
  Presence,
  TroubleBox,
  useAction,
  useModel,
  useWarning,
} from "./components.tsx";
import { KeyringEntry } from "./keyring-entry.tsx";
import { type Model, troubleOfCall } from "./model.ts";
import { Trouble } from "./rest.ts";
import { type FoundSecret, pageRelay } from "./secret-file.ts";
import { Terminal } from "./terminal.tsx";

/** From its restart: a board joins its Wi-Fi, connects and opens a session. */
const ONLINE_MS = 60_000;
/** To a board, this is the board itself. */
const LOOPBACK = /^wss?:\/\/(127\.|localhost|\[::1\])/;

const EXAMPLE = `export default (agent) => {
  agent.handle("echo", (params) => params);
  agent.handle("memory", () => process.memory().free);
};
`;

const serial = (): WebSerial | null =>
  (navigator as { readonly serial?: WebSerial }).serial ?? null;

/** The name of a program that came from no file. */
const TYPED = "program";

/** A device whose agent was made here. */
interface NewDevice {
  readonly board: OpenBoard;
  readonly made: Made;
  readonly secret: FoundSecret;
  /** Why the board may not have got all of it; null if it has. */
  readonly trouble: SetUpTrouble | null;
}

export const AddDevice = ({ model }: { model: Model }): JSX.Element => (
  <>
    <Heading>Add a device</Heading>
    {serial() === null ? <NoSerial /> : <FromPort model={model} />}
  </>
);

const NoSerial = (): JSX.Element => (
  <section aria-labelledby="elsewhere">
    <h2 id="elsewhere">
      {isSecureContext
        ? "This browser cannot reach a board"
        : "This page came over http, so it cannot reach a board"}
    </h2>
    <p>
      {isSecureContext
        ? "Chrome, Edge and Opera can, on a computer with Windows, macOS, Linux or ChromeOS. Open this page there, with the board plugged in."
        : "Browsers give a board's port to pages that came over https, or from this computer itself."}
    </p>
    <p>Or use the command, on any computer with Node:</p>
    <pre tabIndex={0} role="region" aria-label="Commands">
      {`blindrelay login --url ${pageRelay()}
blindrelay provision PORT --name "Pump in hall 7"
blindrelay flash PORT --program pump.js`}
    </pre>
  </section>
);

const FromPort = ({ model }: { model: Model }): JSX.Element => {
  const [board, setBoard] = useState<OpenBoard | null>(null);
  const [device, setDevice] = useState<NewDevice | null>(null);
  const { busy, trouble, setTrouble, act } = useAction();
  const [isWorking, setWorking] = useState(false);
  const open = useRef<OpenBoard | null>(null);
  const isLeft = useRef(false);
  const hold = (next: OpenBoard | null) => {
    void open.current?.close();
    open.current = next;
    setBoard(next);
    // Else nobody would close it, and its port could not be chosen again.
    if (isLeft.current) void next?.close();
  };
  useEffect(() => {
    // Ready before a port is chosen; a failure is told then.
    loadBoardCode().catch(() => undefined);
    return () => {
      isLeft.current = true;
      void open.current?.close();
    };
  }, []);

  const lost = (why: Trouble) => {
    hold(null);
    setTrouble(why);
  };
  useEffect(() => {
    // What is being set up says more of it.
    if (device === null) board?.onLost((why) => isWorking || lost(troubleOfCall(why)));
  }, [board, device, isWorking]);

  const choose = () =>
    act(async () => {
      const port = await serial()
        ?.requestPort()
        .catch((error: DOMException) => {
          if (error.name === "NotFoundError") return undefined; // none was chosen
          throw error;
        });
      if (port === undefined) return;
      await open.current?.close();
      hold(null);
      hold(await (await loadBoardCode()).openBoard(port));
    });

  if (device !== null) return <Added model={model} device={device} />;
  return (
    <>
      <section aria-labelledby="board">
        <h2 id="board">1. The board</h2>
        <p>
          Plug a board with Espruino into this computer. What runs on it is stopped, to see what it
          is.
        </p>
        <TroubleBox trouble={trouble} />
        <div role="status">{board && <BoardFacts board={board} />}</div>
        <button
          type="button"
          class={board ? "" : "primary"}
          disabled={busy || isWorking}
          onClick={choose}
        >
          {busy ? "Looking…" : board ? "Choose another port" : "Choose its port"}
        </button>
      </section>
      {board && (
        <>
          <Describe
            model={model}
            board={board}
            working={setWorking}
            lost={lost}
            added={setDevice}
          />
          <Terminal key={board} board={board} disabled={isWorking} />
        </>
      )}
    </>
  );
};

const BoardFacts = ({ board }: { board: OpenBoard }): JSX.Element => {
  const { found, version } = board;
  const facts: Fact[] = [
    ["Board", found.board],
    ["Engine", `Espruino ${found.version}`],
    ["Memory", `${found.variables.toLocaleString()} variables`],
    ["Free in Storage", bytesText(found.freeBytes)],
    ["Packet version", version],
    ["Until now", found.agentId ?? "no agent"],
  ];
  return <FactList facts={facts} />;
};

const Describe = (props: {
  model: Model;
  board: OpenBoard;
  /** Whether the board is being set up. */
  working: (isWorking: boolean) => void;
  /** The board cannot be reached any more. */
  lost: (why: Trouble) => void;
  added: (device: NewDevice) => void;
}): JSX.Element => {
  const { model, board, working, lost, added } = props;
  const [name, setName] = useState("");
  const [id, setId] = useState("");
  const [ssid, setSsid] = useState("");
  const [password, setPassword] = useState("");
  const [source, setSource] = useState(EXAMPLE);
  const [file, setFile] = useState(TYPED);
  const [problems, setProblems] = useState<readonly string[]>([]);
  const [url, setUrl] = useState(() => relayUrl(pageRelay()));
  const [step, setStep] = useState<readonly [what: string, done: number]>(["", 0]);
  const { busy, trouble, setTrouble, act } = useAction();
  useWarning(busy);
  const joins = board.found.modules.includes("Wifi");

  const setUp = async () => {
    const code = await loadBoardCode();
    const wrong = code.problemsOf(source);
    setProblems(wrong);
    if (wrong.length > 0) {
      document.getElementById("source")?.focus();
      return;
    }
    const wifi = joins && ssid !== "" ? { ssid, password } : null;
    const problem = wifi && code.wifiProblem(wifi);
    if (problem) throw new Trouble(`${problem[0]?.toUpperCase()}${problem.slice(1)}.`, "", "");
    const agentToken = code.makeSecret();
    let made: Made | undefined;
    const make = async (): Promise<Made> => {
      const agent = await model.createAgent(name.trim(), id.trim() || null);
      made = { agentId: agent.agent_id, name: agent.name, relayToken: agent.api_token };
      return made;
    };
    const told = (what: string, done: number) => setStep([what, done]);
    let failed: SetUpTrouble | null = null;
    try {
      await board.setUp({ url: addressIn(url), agentToken, wifi, source, file, make }, told);
    } catch (error) {
      failed = error as SetUpTrouble;
    }
    if (made !== undefined && (failed === null || failed.mayBeNew)) {
      const secret = { agentToken, version: board.version };
      model.addMade(made.agentId, secret);
      added({ board, made, secret, trouble: failed });
      return;
    }
    if (failed === null) return;
    if (made !== undefined) await undo(made);
    if (failed.isLost) lost(troubleOfCall(failed));
    throw failed;
  };

  /** Its secret is on no board. */
  const undo = ({ agentId }: Made): Promise<void> =>
    model.deleteAgent(agentId).catch((error) => {
      const { message } = troubleOfCall(error);
      const fix = "It has no device: delete it in the list of agents.";
      throw new Trouble(`${agentId} was made, and could not be removed: ${message}`, fix, "");
    });

  const submit = () => {
    working(true);
    model.settingUp++;
    void act(setUp).finally(() => {
      model.settingUp--;
      working(false);
    });
  };

  return (
    <section aria-labelledby="device">
      <h2 id="device">2. The device</h2>
      <form onSubmit={submit}>
        <div class="row">
          <Input
            id="name"
            label="Name"
            required
            maxLength={128}
            placeholder="Pump in hall 7"
            value={name}
            set={setName}
          />
          <Input
            id="id"
            label="Identifier"
            hint="Empty: the relay makes one."
            pattern="[A-Za-z0-9_\-]{1,64}"
            autocapitalize="none"
            placeholder="pump-7"
            value={id}
            set={setId}
          />
        </div>
        {joins ? (
          <div class="row">
            <Input
              id="ssid"
              label="Wi-Fi"
              hint="Empty: the board joins its network by itself."
              value={ssid}
              set={setSsid}
            />
            <Input
              id="password"
              label="Its password"
              hint="It goes to the board only."
              type="password"
              value={password}
              set={setPassword}
            />
          </div>
        ) : (
          <p class="hint">
            This board has no Wi-Fi of Espruino's: its program has to bring up its network.
          </p>
        )}
        <Field
          id="source"
          label="Program"
          hint="JavaScript: what the device does when it is called. Types are for `blindrelay flash`."
        >
          <textarea
            id="source"
            rows={8}
            required
            spellcheck={false}
            autocomplete="off"
            value={source}
            aria-describedby="source-problems source-hint"
            aria-invalid={problems.length > 0}
            onInput={({ currentTarget }) => setSource(currentTarget.value)}
          />
          <div id="source-problems" role="alert">
            {problems.map((problem) => (
              <p key={problem} class="problem">
                {problem}
              </p>
            ))}
          </div>
        </Field>
        <div class="row">
          <Field id="program" label="… or from a file">
            <FileInput
              id="program"
              what="a program"
              take={(text, name) => {
                setSource(text);
                setFile(name);
              }}
              setTrouble={setTrouble}
            />
          </Field>
          <Input
            id="url"
            label="Relay, as the board reaches it"
            hint={addressHint(url)}
            required
            autocapitalize="none"
            value={url}
            set={setUrl}
          />
        </div>
        <TroubleBox trouble={trouble} />
        <div aria-live="polite">
          {busy && step[0] !== "" && (
            <>
              <label for="progress">{step[0]}</label>
              <progress id="progress" value={step[1]} max={1} />
            </>
          )}
        </div>
        <button type="submit" class="primary" disabled={busy}>
          {busy ? "Leave it plugged in…" : "Set up the board"}
        </button>
      </form>
    </section>
  );
};

/** Throws a Trouble for a text that is no address. */
const addressIn = (text: string): string => {
  try {
    return relayUrl(text.trim());
  } catch (error) {
    throw new Trouble(`The relay's address: ${(error as Error).message}.`, "", "");
  }
};

const addressHint = (url: string): string => {
  if (LOOPBACK.test(url)) return "This is the board itself: give this computer's address.";
  return url.startsWith("wss:")
    ? "Espruino's TLS verifies no certificate: who is on the way could log in as the device, but not read or answer a call."
    : "";
};

/** Waits until the device is online, and lets its owner keep the secret. */
const Added = ({ model, device }: { model: Model; device: NewDevice }): JSX.Element => {
  const { board, made, secret } = device;
  useModel(model);
  const isKept = !model.unkept.has(made.agentId);
  const [info, setInfo] = useState<SystemInfo | null>(null);
  const [trouble, setTrouble] = useState(device.trouble && troubleOfCall(device.trouble));
  const [isLost, setLost] = useState(false);
  const error = useRef<FirstError | null>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => heading.current?.focus(), []); // the form that had it is gone
  useEffect(() => {
    if (device.trouble !== null) return;
    const stop = new AbortController();
    error.current = board.firstError((text) => {
      const fix = "Correct the program, and set the board up again.";
      stop.abort(new Trouble(`The board could not start the program: ${text}`, fix, ""));
    });
    board.onLost((why) => {
      setLost(true);
      stop.abort(troubleOfCall(why));
    });
    model
      .openSoon(made.agentId, secret, ONLINE_MS, stop.signal)
      .then(setInfo, (error) => setTrouble(troubleOfCall(error)))
      .finally(() => error.current?.stop());
    return () => stop.abort(new Trouble("", "", ""));
  }, []);
  const isWaiting = info === null && trouble === null;
  return (
    <>
      <section aria-labelledby="online">
        <h2 id="online" ref={heading} tabIndex={-1}>
          {`3. ${made.name}`}
        </h2>
        <TroubleBox trouble={trouble} />
        <div role="status">
          {isWaiting && <p>The board starts. Waiting until it is online…</p>}
          {info && (
            <p>
              <Presence online={true} />
              {` It answered: ${info.runtime ?? "an unknown runtime"}.`}
            </p>
          )}
        </div>
        {isWaiting && <progress aria-label="Waiting until it is online" />}
        <p>
          <a class={info ? "button primary" : "button"} href={`#/agents/${made.agentId}`}>
            {info ? "Call it" : "Look at the agent"}
          </a>
        </p>
      </section>
      <section aria-labelledby="secret">
        <h2 id="secret">4. Keep its secret</h2>
        <p>
          {isKept
            ? "You have a copy. This page forgets the secret when it is closed."
            : "It was made in this page, and is nowhere but here and on the board. Keep it before you close the page."}
        </p>
        <KeyringEntry
          agentId={made.agentId}
          secret={secret}
          kept={() => model.keepsElsewhere(made.agentId)}
        />
      </section>
      {device.trouble === null && (
        <Terminal board={board} heard={(line) => error.current?.receive(line)} disabled={isLost} />
      )}
    </>
  );
};
