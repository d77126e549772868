/**
 * Runs on the chip, in place of a project's main.js: an agent whose clock, network and commands are
 * the process's at the other end of the line (../worker.ts), so that it is on a virtual clock.
 *
 * Both ends write `LENGTH:KIND BODY`; a zero byte follows each command, so that the host hands it
 * on. After every command, and all promise jobs that it left, `done` says when the next timer is
 * due.
 */
import program from "device-program";
import type { AgentCore } from "../../src/core/agent-core.ts";
import {
  asciiBytes,
  asciiText,
  KEPT_NAMES,
  provisionAgent,
  startAgent,
} from "../../src/moddable/core.ts";
import { moddableSuite } from "../../src/moddable/suite.ts";
import type { Link, LinkEvents, TimerPort } from "../../src/ports.ts";
import type { ChipStart } from "../chip.ts";
import { crypt, random, storage } from "./ports.ts";

const COLON = 58;

const say = (kind: string, body = ""): void => {
  const text = `${kind} ${body}`;
  chip.write(asciiBytes(`${text.length}:${text}`));
};

let now = 0;
let timers: { readonly due: number; readonly fn: () => void }[] = [];
const timer: TimerPort = {
  now: () => now,
  set: (ms, fn) => {
    const one = { due: now + ms, fn };
    timers.push(one);
    return one;
  },
  clear: (handle) => {
    timers = timers.filter((one) => one !== handle);
  },
};

const links = new Map<number, LinkEvents>();
let lastLink = 0;
const link = {
  connect: (_url: string, events: LinkEvents): Link => {
    lastLink++;
    const id = lastLink;
    links.set(id, events);
    say("connect", `${id}`);
    return {
      send: (text) => say("send", `${id} ${text}`),
      close: (code, reason) => say("close", `${id} ${code} ${reason}`),
    };
  },
};

const suite = moddableSuite(crypt);
let core: AgentCore | null = null;

/** `NUMBER REST` */
const split = (text: string): [number, string] => {
  const space = text.indexOf(" ");
  return [Number(text.substring(0, space)), text.substring(space + 1)];
};

const commands: { readonly [kind: string]: (body: string) => void } = {
  provision: (agentToken) => provisionAgent({ storage, suite }, agentToken),
  start: (body) => {
    core = startAgent(
      {
        timer,
        random,
        storage,
        suite,
        link,
        log: (_level, message, fields) => {
          if (message === "executed") say("executed", JSON.stringify(fields));
        },
      },
      {
        ...(JSON.parse(body) as ChipStart),
        url: "ws://relay.test/wss",
        runtime: "moddable chip",
        keptNames: KEPT_NAMES,
        program,
      },
    );
  },
  emit: (body) => {
    core?.agent.emit("tick", JSON.parse(body));
  },
  fire: () => {
    const due = timers.filter((one) => one.due <= now);
    for (const one of due) {
      if (!timers.includes(one)) continue;
      timer.clear(one);
      one.fn();
    }
  },
  opened: (id) => links.get(Number(id))?.opened(),
  received: (body) => {
    const [id, text] = split(body);
    links.get(id)?.received(text);
  },
  closed: (body) => {
    const [id, rest] = split(body);
    const [code, reason] = split(rest);
    const events = links.get(id);
    links.delete(id);
    events?.closed(code, reason);
  },
  damage: (slot) => storage.write(`boot.${slot}`, "torn"),
  lose: (slot) => chip.put(`boot.${slot}.0`, new ArrayBuffer(0)),
  figures: () =>
    say("figures", JSON.stringify(Array.from({ length: 6 }, (_, i) => chip.figure(i)))),
};

let pieces: Uint8Array[] = [];
let missing = 0;
let problem = "";

const command = (text: string): void => {
  const space = text.indexOf(" ");
  const kind = text.substring(0, space);
  const [at, body] = split(text.substring(space + 1));
  now = at;
  problem = "";
  try {
    (commands[kind] as (body: string) => void)(body);
  } catch (error) {
    problem = (error as Error).message;
  }
};

globalThis.onData = (piece) => {
  let bytes = new Uint8Array(piece);
  if (pieces.length === 0) {
    const colon = bytes.indexOf(COLON);
    missing = Number(asciiText(bytes.subarray(0, colon))) + 1;
    bytes = bytes.slice(colon + 1);
  }
  pieces.push(bytes);
  missing -= bytes.length;
  if (missing > 0) return;
  let text = "";
  for (const one of pieces) text += asciiText(one);
  pieces = [];
  command(text.substring(0, text.length - 1));
  // It comes when all promise jobs are through.
  chip.alarm(0);
};

globalThis.onAlarm = () => {
  let next = -1;
  for (const { due } of timers) if (next < 0 || due < next) next = due;
  say("done", `${next} ${problem}`);
};
