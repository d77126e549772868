/**
 * Runs on the chip while its power is cut: an agent without a network, to which this module pushes
 * one program after another, and which prints what has become of them. Its argument is as in
 * cuts.ts.
 */
import programs from "pushed-programs";
import {
  asciiBytes,
  asciiText,
  crc32,
  decodeJson,
  encodeJson,
  provisionAgent,
} from "../../src/moddable/core.ts";
import { moddableSuite } from "../../src/moddable/suite.ts";
import { startWithPushes } from "./edge.ts";
import { crypt, random, slotsOf, storage, timer } from "./ports.ts";

const suite = moddableSuite(crypt);
const [agentToken, relayToken, isNew] = chip.argument().split(" ") as [string, string, string?];
if (isNew !== undefined) {
  provisionAgent({ storage, suite }, agentToken);
  chip.exit(0);
}
const link = { connect: () => ({ send: () => {}, close: () => {} }) };
const core = startWithPushes(
  { timer, random, storage, suite, link, log: () => {} },
  {
    url: "ws://none/wss",
    agentId: "cuts",
    agentToken,
    relayToken,
    runtime: "moddable chip",
    maxPlaintext: 1024,
    program: (agent) => agent.handle("which", () => [0]),
  },
  slotsOf(chip.why()),
  null,
);

/** The result of a call; throws its error. */
const call = <Result>(method: string, params?: object): Result => {
  const request = encodeJson({ jsonrpc: "2.0", id: 1, method, params }) as string;
  let text = "";
  core.dispatcher.receive(asciiBytes(request), "sid", 0, (answer) => {
    text = asciiText(answer);
  });
  const { result, error } = decodeJson(text) as { result: Result; error?: { message: string } };
  if (error !== undefined) throw new Error(error.message);
  return result;
};

const { trial, part } = call<{ trial: string | null; part: number }>("system.push");
const numbers = call<number[]>("which");
chip.print(`runs ${numbers.join()} ${trial === null ? "as kept" : "on trial"}`);
if (trial !== null) {
  chip.print("confirms");
  call("system.push", { confirm: trial });
  chip.print("kept");
}
// One of the two others, so that a slot has held more than one.
const others = crc32(asciiBytes(`${storage.read("boot.0")}${storage.read("boot.1")}`)) & 1;
const next = (((numbers[0] as number) + others) % programs.length) + 1;
const { data, size, sha256 } = programs[next - 1] as (typeof programs)[number];
chip.print(`pushes ${next}`);
call("system.push", { size, sha256, version: "1.0.0", seconds: 60 });
for (let at = 0; at < size; at += part) {
  const text = data.substring((at / 3) * 4, ((at + part) / 3) * 4);
  call("system.push", { at, data: text });
}
chip.print("starts");
call("system.push", { start: true });
chip.restart();
