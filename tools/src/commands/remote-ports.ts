/** `blindrelay devices --remote`: the ports that the account's bridges offer, and who uses them. */

import { CallError, type Client } from "@blindrelay/client-sdk";
import { isObject, own } from "@blindrelay/protocol/crypto";
import { accountRest, listAgents } from "../account/account.ts";
import { withClient } from "../account/connect.ts";
import { presentAgent } from "../account/rekey.ts";
import { callFailure } from "../base/call-failure.ts";
import { UNKNOWN_METHOD } from "../base/methods.ts";
import { printList, printStatus } from "../base/output.ts";
import type { Settings } from "../config/settings.ts";

interface RemotePortInfo {
  readonly agent_id: string;
  readonly port: string;
  /** What else `attach AGENT PORT` takes for it; "" if it has no other name. */
  readonly name: string;
  readonly mode: string;
  readonly access: string;
  readonly open: boolean;
  readonly opening: string | null;
  readonly user: { readonly user: string; readonly since: string } | null;
  readonly watchers: number;
}

const CONNECT_LIMIT_MS = 30_000;
const ASK_LIMIT_MS = 10_000;
const AT_ONCE = 16;
const HEADER = ["AGENT", "PORT", "NAME", "ACCESS", "USED BY", "SINCE", "WATCHERS"];

/** What an agent says of itself is shown, and only in the form that it should have. */
const readPort = (agentId: string, value: unknown): RemotePortInfo | null => {
  if (!isObject(value)) return null;
  const text = (name: string): string => {
    const given = own(value, name);
    return typeof given === "string" ? given : "";
  };
  const user = own(value, "user");
  const [who, since] = isObject(user) ? [own(user, "user"), own(user, "since")] : [];
  const watchers = own(value, "watchers");
  const opening = own(value, "opening");
  return {
    agent_id: agentId,
    port: text("port"),
    name: text("name"),
    mode: text("mode"),
    access: text("access"),
    open: own(value, "open") === true,
    opening: typeof opening === "string" ? opening : null,
    user: typeof who === "string" && typeof since === "string" ? { user: who, since } : null,
    watchers: typeof watchers === "number" ? watchers : 0,
  };
};

const asRow = (info: RemotePortInfo): string[] => {
  const { agent_id: id, port, name, access, open, user, watchers } = info;
  return [
    id,
    port,
    name === port ? "" : name,
    open ? access : "away",
    user?.user ?? "",
    user?.since ?? "",
    watchers === 0 ? "" : String(watchers),
  ];
};

/** Rejects with a Failure. */
export const listRemotePorts = async (settings: Settings, json: boolean): Promise<void> => {
  const agents = await listAgents(accountRest(settings));
  const asked = agents.filter(({ agent_id: id, online }) => online && settings.secretAtHand(id));
  const items: RemotePortInfo[] = [];
  const ask = async (client: Client, id: string): Promise<void> => {
    const secret = settings.secretAtHand(id);
    if (secret === null) return;
    try {
      const agent = await presentAgent(client, settings, id, secret);
      const answer = await agent.call<unknown>("serial.ports", {}, { timeoutMs: ASK_LIMIT_MS });
      const ports = isObject(answer) ? own(answer, "ports") : undefined;
      for (const port of Array.isArray(ports) ? ports : []) {
        const read = readPort(id, port);
        if (read !== null) items.push(read);
      }
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      if (error.remote?.code === UNKNOWN_METHOD) return; // no bridge, or an older one
      printStatus(`${id}: ${callFailure(error).message}`);
    }
  };
  await withClient(settings, CONNECT_LIMIT_MS, async (client) => {
    for (let at = 0; at < asked.length; at += AT_ONCE) {
      const some = asked.slice(at, at + AT_ONCE);
      await Promise.all(some.map(({ agent_id: id }) => ask(client, id)));
    }
  });
  const none = "no bridge of yours offers a port now: blindrelay bridge PORT --mode raw";
  printList({ json }, items, none, HEADER, asRow);
};
