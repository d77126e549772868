/** `blindrelay completion SHELL`: commands, options, and what the profiles of this machine hold. */
import { addCompletion as addTo } from "@blindrelay/protocol/command-line";
import { Option } from "commander";
import type { Command } from "../base/command.ts";
import type { Context } from "./context.ts";
import { listNames } from "./profile.ts";

/** Every agent has them; which others, only the agent itself could tell. */
const METHODS = ["system.info", "system.ping"];

export const addCompletion = (cli: Command, context: Context): void => {
  addTo(cli, process.stdout, (name) => {
    if (name === "method") return METHODS;
    const settings = context.settings();
    if (name === "profile") return listNames(settings);
    // Nobody is prompted for a passphrase.
    if (name !== "agent" || settings.isLocked) return [];
    return Object.keys(settings.profile?.keyring ?? {});
  });
  // Every command takes it.
  cli.commands.at(-1)?.addOption(new Option("--json", "no difference here").hideHelp());
};
