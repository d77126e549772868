/**
 * `blindrelay doctor`: checks everything from the profile to the agent, with a fix for each
 * problem.
 */

import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { CallError, type Client } from "@blindrelay/client-sdk";
import { accountTokenProblem, tokenProblem } from "@blindrelay/protocol";
import { Failure } from "@blindrelay/protocol/command-line";
import { reasonOfError } from "@blindrelay/protocol/net";
import { proxyFor } from "@blindrelay/protocol/net/node";
import type { Agent, AuthConfig } from "@blindrelay/protocol/schema/rest";
import { accountRest, agentPath } from "../account/account.ts";
import { connectClient } from "../account/connect.ts";
import { presentAgent } from "../account/rekey.ts";
import type { Command } from "../base/command.ts";
import { type JsonFlag, oneLine, printJson, printText } from "../base/output.ts";
import { Rest, RestFailure } from "../base/rest.ts";
import { otherReadersOf } from "../config/file-readers.ts";
import { checkAgentId, type Settings } from "../config/settings.ts";
import type { Context } from "./context.ts";
import { listPorts } from "./devices.ts";

export interface Check {
  readonly name: string;
  /** Null: optional, or not checked because an earlier check failed. */
  readonly ok: boolean | null;
  readonly detail: string;
  readonly fix: string | null;
}

const LIMIT_MS = 10_000;
const CALL_MS = 8_000;
/** A one-time code is valid for one more step of 30 s. */
const MAX_CLOCK_MS = 30_000;

const found =
  (ok: boolean | null) =>
  (name: string, detail: string, fix: string | null = null): Check => ({ name, ok, detail, fix });
const good: (name: string, detail: string) => Check = found(true);
const bad: (name: string, detail: string, fix: string) => Check = found(false);
const note = found(null);

const checkProfile = (settings: Settings): Check => {
  const path = settings.profilePath;
  if (!existsSync(path)) {
    return note(
      "profile",
      `none at ${path}`,
      "run blindrelay login, or set BLINDRELAY_URL and the rest",
    );
  }
  try {
    const keys = Object.keys(settings.profile?.keyring ?? {}).length;
    const readers = otherReadersOf(path);
    const fix = `chmod 600 ${path}`;
    if (readers === "everybody") return bad("profile", `${path} can be read by others`, fix);
    if (readers === "group") return note("profile", `${path} can be read by a group`, fix);
    return good("profile", `${path}, ${keys} ${keys === 1 ? "secret" : "secrets"} in its keyring`);
  } catch (error) {
    return bad(
      "profile",
      (error as Error).message,
      "keep the file, and repair it or go back: blindrelay profile restore",
    );
  }
};

const isLoopback = (url: string): boolean =>
  /^https?:\/\/(127\.|localhost[:/]|localhost$|\[::1\])/.test(url);

/** The reasons that lie in TLS, by what they say. */
const isOfTls = (why: string): boolean => /certificate|TLS/i.test(why);

const checkProxy = (url: string): Check[] => {
  try {
    const proxy = proxyFor(new URL(url), undefined);
    return proxy === null ? [] : [note("proxy", `${proxy.name}, as the environment says`)];
  } catch (error) {
    const [detail = "", fix = null] = reasonOfError(error).text.split("; fix: ");
    return [bad("proxy", detail, fix ?? "")];
  }
};

const checkRelay = async (url: string): Promise<Check[]> => {
  const started = performance.now();
  const rest = new Rest(url, null, { answerMs: LIMIT_MS });
  let config: AuthConfig;
  try {
    config = await rest.ask("AuthConfig", "GET", "/auth/config");
  } catch (error) {
    const [detail = "", fix = null] = (error as Error).message.split("; fix: ");
    return [bad(isOfTls(detail) ? "TLS" : "relay", detail, fix ?? "check the address")];
  }
  const took = Math.round(performance.now() - started);
  const checks = [good("relay", `${url}, version ${config.version}, ${took} ms`)];
  if (url.startsWith("https:")) checks.push(good("TLS", "the certificate is valid"));
  else if (isLoopback(url)) checks.push(note("TLS", "none, on this machine only"));
  else checks.push(bad("TLS", "none: tokens go in the clear", "use https:// (docs/operations.md)"));
  if (rest.relayTime !== null) {
    const off = Math.abs(Date.now() - rest.relayTime);
    checks.push(
      off > MAX_CLOCK_MS
        ? bad(
            "clock",
            `differs from the relay's by ${Math.round(off / 1000)} s`,
            "set this machine's clock (NTP)",
          )
        : good("clock", "agrees with the relay's"),
    );
  }
  return checks;
};

const checkAccount = async (settings: Settings): Promise<Check> => {
  let token: string;
  try {
    token = settings.accountToken();
  } catch (error) {
    if (settings.profile?.account_token !== undefined) {
      return bad("account", (error as Error).message, "use one relay for both");
    }
    return note(
      "account",
      "no account token",
      "run blindrelay login, or set BLINDRELAY_ACCOUNT_TOKEN",
    );
  }
  const problem = accountTokenProblem(token);
  if (problem !== null) return bad("account", problem, "run blindrelay login");
  try {
    const { username } = await new Rest(settings.httpUrl(), token).ask("User", "GET", "/account");
    return good("account", username);
  } catch (error) {
    const code = error instanceof RestFailure ? error.code : "";
    // What an access key may do is seen where it is used.
    if (code === "FORBIDDEN") return good("account", "an access key");
    const isLockedOut = code === "LOCKED_OUT";
    const fix = isLockedOut
      ? "wait, and stop what fails to log in from this address (other programs, other people)"
      : "run blindrelay login again";
    return bad("account", (error as Error).message, fix);
  }
};

/** The connection that calls use; a proxy that passes REST may still block it. */
const checkLink = async (
  settings: Settings,
): Promise<{ readonly check: Check; readonly client: Client | null }> => {
  try {
    const client = await connectClient(settings, LIMIT_MS);
    return { check: good("link", "WebSocket is open"), client };
  } catch (error) {
    // REST came through, so the address is right.
    const [detail = ""] = (error as Error).message.split("; fix: ");
    const fix = "a proxy between must pass WebSocket upgrades (docs/operations.md)";
    return { check: bad("link", detail, fix), client: null };
  }
};

const checkAgent = async (settings: Settings, agentId: string): Promise<Check> => {
  let agent: Agent;
  try {
    agent = await accountRest(settings).ask("Agent", "GET", agentPath(agentId));
  } catch (error) {
    return bad("agent", (error as Error).message, "blindrelay agent list shows yours");
  }
  if (agent.online) {
    return good(
      "agent",
      `${agentId} is online${agent.runtime ? `: ${oneLine(agent.runtime)}` : ""}`,
    );
  }
  const seen = agent.last_seen === null ? "never seen" : `last seen ${agent.last_seen}`;
  const fix = "check its power and network (blindrelay monitor PORT shows its output)";
  return bad("agent", `${agentId} is offline, ${seen}`, fix);
};

const checkSecret = async (settings: Settings, client: Client, agentId: string): Promise<Check> => {
  const secret = settings.secretAtHand(agentId);
  if (secret === null) {
    const fix = "use the profile that added it, or set BLINDRELAY_AGENT_TOKEN";
    return bad("secret", `none at hand for ${agentId}`, fix);
  }
  const problem = tokenProblem(secret.agentToken, "e2e");
  if (problem !== null) return bad("secret", problem, "set the end-to-end secret (e2e_)");
  try {
    const agent = await presentAgent(client, settings, agentId, secret);
    await agent.call("system.ping", undefined, { timeoutMs: CALL_MS, idempotent: true });
    return good("secret", `right, packet version ${secret.version}`);
  } catch (error) {
    if (error instanceof CallError && error.code !== "TIMED_OUT") {
      return bad("secret", oneLine(error.message), "try again");
    }
    const fix =
      "it runs with another secret or packet version: provision it again, or find its secret";
    return bad("secret", `no verified answer in ${CALL_MS / 1000} s`, fix);
  }
};

/** Checks that require an account known to the relay. */
const checkBeyondAccount = async (
  settings: Settings,
  agentId: string | undefined,
): Promise<Check[]> => {
  const link = await checkLink(settings);
  try {
    if (agentId === undefined) return [link.check];
    const agent = await checkAgent(settings, agentId);
    if (link.client === null || agent.ok !== true) return [link.check, agent];
    return [link.check, agent, await checkSecret(settings, link.client, agentId)];
  } finally {
    link.client?.close();
  }
};

const checkPorts = async (): Promise<Check[]> => {
  let ports: Awaited<ReturnType<typeof listPorts>>;
  try {
    ports = await listPorts(false);
  } catch (error) {
    return [note("ports", (error as Error).message)];
  }
  if (ports.length === 0) return [note("ports", "no serial port with a USB device")];
  return ports.map(({ port }) => {
    try {
      accessSync(port, constants.R_OK | constants.W_OK);
      return good("port", port);
    } catch {
      const fix = "sudo usermod -aG dialout $USER, then log in again";
      return bad("port", `no permission on ${port}`, fix);
    }
  });
};

const isInstalled = (command: string): boolean =>
  (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, command)));

const checkTools = (): Check[] => [
  good("node", process.versions.node),
  isInstalled("mcconfig") && process.env.MODDABLE !== undefined
    ? good("moddable", "mcconfig is there")
    : note(
        "moddable",
        "no mcconfig",
        "only for --target moddable: install its SDK and set MODDABLE",
      ),
];

/** All checks, each after those it depends on. */
const diagnose = async (settings: Settings, agentId: string | undefined): Promise<Check[]> => {
  const checks: Check[] = [checkProfile(settings)];
  let url: string | null = null;
  try {
    url = settings.httpUrl();
  } catch (error) {
    checks.push(
      bad("relay", (error as Error).message, "name it: BLINDRELAY_URL, or blindrelay login"),
    );
  }
  if (url !== null) {
    checks.push(...checkProxy(url));
    const relay = await checkRelay(url);
    checks.push(...relay);
    if (relay[0]?.name === "relay" && relay[0].ok === true) {
      const account = await checkAccount(settings);
      checks.push(account);
      if (account.ok === true) checks.push(...(await checkBeyondAccount(settings, agentId)));
    }
  }
  return [...checks, ...(await checkPorts()), ...checkTools()];
};

const asText = ({ name, ok, detail, fix }: Check): string => {
  const mark = ok === null ? "-  " : ok ? "ok " : "BAD";
  return `${mark} ${name.padEnd(9)} ${oneLine(detail)}${fix === null ? "" : `\n              fix: ${fix}`}`;
};

export const addDoctor = (cli: Command, context: Context): void => {
  cli
    .command("doctor")
    .description("check everything from the profile to the agent, and print a fix for each problem")
    .argument("[agent]", "also check that this agent is online and its secret is right")
    .option("--json", "one JSON document")
    .example(`
  blindrelay doctor pump-7

Exits with 1 if something is wrong.`)
    .action(async (agent: string | undefined, flags: JsonFlag) => {
      if (agent !== undefined) checkAgentId(agent);
      const checks = await diagnose(context.settings(), agent);
      const wrong = checks.filter(({ ok }) => ok === false).length;
      if (flags.json === true) printJson({ ok: wrong === 0, checks });
      else for (const check of checks) printText(asText(check));
      if (wrong > 0)
        throw new Failure(
          "expectation",
          `${wrong} of ${checks.length} checks ${wrong === 1 ? "is" : "are"} bad`,
        );
    });
};
