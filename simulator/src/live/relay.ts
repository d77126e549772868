/**
 * The relay of a live run: a fresh one in a separate process, which faults restart and whose
 * metrics are read, or an external one.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { accountTokenProblem } from "@blindrelay/protocol";
import { Failure } from "@blindrelay/protocol/command-line";
import { stopChild } from "../base/processes.ts";
import type { PlannedFault } from "../scenario/plan.ts";
import type { Called } from "./clients.ts";
import { readUsage } from "./metrics.ts";
import type { LiveOracles } from "./oracles.ts";
import type { RelayFigures } from "./relay-figures.ts";
import { type RelayChild, startAgain, startRelay } from "./relay-process.ts";
import { logIn } from "./rest.ts";

/** For an external relay's account; secrets are never passed in flags. */
const TOKEN_VARIABLE = "BLINDRELAY_ACCOUNT_TOKEN";
/** The longest wait for the drain of a restarting relay. */
export const DRAIN_MS = 20_000;
const RELAY_STARTS = 10;
const RELAY_RETRY_MS = 1_000;

export interface LiveRelayOptions {
  /** An external relay: its http base. */
  externalUrl: string | undefined;
  /** For our own relay's store. */
  folder: string;
  figures: RelayFigures;
  oracles: LiveOracles;
  /** Aborted if our own relay ends by itself. */
  stopping: AbortController;
  /** Prints a line that stays. */
  say(text: string): void;
}

export class LiveRelay {
  accountToken = "";
  /** Undefined for our own relay. */
  readonly externalUrl: string | undefined;
  private readonly options: LiveRelayOptions;
  private child: RelayChild | null = null;
  private isMeantToBeAway = false;
  private lastFigures: Promise<void> = Promise.resolve();

  constructor(options: LiveRelayOptions) {
    this.externalUrl = options.externalUrl;
    this.options = options;
  }

  /** The base of the REST API, without a slash at its end. */
  get url(): string {
    return (this.externalUrl ?? this.child?.url ?? "").replace(/\/$/, "");
  }

  /** Resolves with the token to create agents with. */
  async start(): Promise<string> {
    const { folder, stopping, say } = this.options;
    if (this.externalUrl !== undefined) {
      this.accountToken = process.env[TOKEN_VARIABLE] ?? "";
      if (this.accountToken === "") {
        throw new Failure("usage", `--live needs the account token in ${TOKEN_VARIABLE}`);
      }
      const problem = accountTokenProblem(this.accountToken);
      if (problem !== null) throw new Failure("refused", `${TOKEN_VARIABLE}: ${problem}`);
      return this.accountToken;
    }
    const { signal } = stopping;
    const relay = await startRelay(folder, signal);
    this.watch(relay);
    say(`relay at ${relay.url}, process ${relay.pid}`);
    const account = await logIn(relay, signal);
    this.accountToken = account.accountToken;
    return account.accessToken;
  }

  /** Reads our own relay's metrics. */
  readFigures(): Promise<void> {
    this.lastFigures = this.readOwnFigures();
    return this.lastFigures;
  }

  /** Plays a restart or a crash; resolves once the relay listens again. */
  async restart({ spec, atUs, endUs }: PlannedFault): Promise<void> {
    const relay = this.child;
    if (relay === null) throw new Error("an external relay cannot be restarted");
    this.isMeantToBeAway = true;
    if (spec.kind === "relay.crash") relay.process.kill("SIGKILL");
    else await stopChild(relay.process, () => relay.process.kill("SIGTERM"), DRAIN_MS);
    await relay.ended;
    await delay((endUs - atUs) / 1000);
    const { signal } = this.options.stopping;
    if (signal.aborted) return;
    const { password, url } = relay;
    const known = { password, port: new URL(url).port };
    const next = await this.startAgain(known, signal);
    this.isMeantToBeAway = false;
    this.watch(next);
  }

  /** The run is over: the end of the relay's process is no failure. */
  expectEnd(): void {
    this.isMeantToBeAway = true;
  }

  /** Ends our own relay. */
  async stop(): Promise<void> {
    await this.lastFigures;
    await this.child?.stop();
  }

  /** The first of our own relay's stored files with an end-to-end secret; null if there is none. */
  findSecret(devices: readonly Called[]): Promise<string | null> {
    return findSecret(join(this.options.folder, "store"), devices);
  }

  private async readOwnFigures(): Promise<void> {
    const relay = this.child;
    if (relay === null || this.isMeantToBeAway) return;
    const usage = await readUsage(relay.metricsUrl);
    if (usage === null || this.child !== relay) return;
    this.options.oracles.markChecked("bounds");
    this.options.figures.heard(usage);
  }

  /** Another process's outgoing connection may have taken the port for a moment. */
  private async startAgain(
    known: { password: string; port: string },
    signal: AbortSignal,
  ): Promise<RelayChild> {
    for (let tries = 1; ; tries++) {
      try {
        return await startAgain(this.options.folder, known, signal);
      } catch (error) {
        if (tries === RELAY_STARTS || signal.aborted) throw error;
        await delay(RELAY_RETRY_MS);
      }
    }
  }

  private watch(relay: RelayChild): void {
    this.child = relay;
    this.options.figures.started();
    relay.ended.then((how) => {
      if (this.child !== relay || this.isMeantToBeAway) return;
      this.options.stopping.abort(new Error(`the relay ended (${how})`));
    });
  }
}

async function findSecret(folder: string, devices: readonly Called[]): Promise<string | null> {
  const secrets = new Set(devices.map(({ agentToken }) => agentToken));
  const files = await readdir(folder).catch(() => []);
  for (const file of files) {
    const text = await readFile(join(folder, file), "latin1").catch(() => "");
    for (const [found] of text.matchAll(/e2e_[0-9A-Za-z]{49}/g)) {
      if (secrets.has(found)) return file;
    }
  }
  return null;
}
