/**
 * Runs on the chip while its power is cut: an agent without a network, which raises its boot count,
 * and a setting that is written without end. Its argument is both tokens, and
 * `new` where it is to be provisioned and nothing else.
 */
import { provisionAgent, startAgent } from "../../src/moddable/core.ts";
import { moddableSuite } from "../../src/moddable/suite.ts";
import { crypt, random, storage, timer } from "./ports.ts";

const suite = moddableSuite(crypt);
const [agentToken, relayToken, isNew] = chip.argument().split(" ") as [string, string, string?];
if (isNew !== undefined) {
  provisionAgent({ storage, suite }, agentToken);
  storage.write("other", "kept");
  chip.print(`aliases ${chip.figure(5)}`);
  chip.exit(0);
}
const link = { connect: () => ({ send: () => {}, close: () => {} }) };
startAgent(
  { timer, random, storage, suite, link, log: () => {} },
  {
    url: "ws://none/wss",
    agentId: "cuts",
    agentToken,
    relayToken,
    program: () => {},
    runtime: "moddable chip",
  },
);
const counts = ["boot.0", "boot.1"].map((name) => Number(storage.read(name)?.split(" ")[2]));
let setting = Number(storage.read("setting") ?? 0);
chip.print(`count ${Math.max(...counts)} setting ${setting} other ${storage.read("other")}`);
for (;;) {
  setting++;
  storage.write("setting", `${setting}`);
  chip.print(`wrote ${setting}`);
}
