import { Command as CommanderCommand } from "commander";

/** Commander's, with examples below its help. */
export class Command extends CommanderCommand {
  declare readonly commands: readonly Command[];

  override createCommand(name?: string): Command {
    return new Command(name);
  }

  /** One or more command lines, and what else there is to say after a blank line. */
  example(text: string): this {
    return this.addHelpText("after", `\nExample:\n  ${text.trimStart()}`);
  }
}
