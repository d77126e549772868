/**
 * Run by hand: many clients on the thermostat on a real Espruino, beside a listener. See HELP.
 */
import { readFlags } from "../flags.ts";
import { openRelayFixture } from "../xs/relay-fixture.ts";
import { boardBinary, smallBinary } from "./engine.ts";
import { CALLS, startThermostat } from "./thermostat-board.ts";

const HELP = `usage: node test/src/espruino/load.ts [--calls N] [--callers N] [--at-once N] [--over LINE]

Calls of many clients to the thermostat on the Espruino that ESPRUINO_BIN_32 (else
ESPRUINO_BIN_2630) names, beside a listener.

  --calls N     calls of 50 clients in all (1000)
  --callers N   how many of those clients call at the same time (2)
  --at-once N   then so many calls of five clients at once (20)
  --over LINE   websocket, or bridge: a UART with a bridge at its other end (websocket)

Exit code 1 if a call of the 50 clients is not answered, one of the five at once on a board of more
than 4,000 variables, the board does not answer at the end, or the listener heard
nothing for 30 s without a notification.`;

const flags = readFlags({
  help: HELP,
  flags: { calls: "1000", callers: "2", "at-once": "20", over: "websocket" },
});
const CLIENTS = 50;
const SIZES = [0, 16, 64, 128, 200, 256, 300, 320, 330, 384, 500, 700, 1000];
const TIMEOUT_MS = 60_000;
/** A board on a busy machine emits every 2 s of its own time. */
const SILENCE_MS = 30_000;
/** From so many on a board has room for five callers. */
const ROOMY_VARIABLES = 4000;

const path = boardBinary ?? smallBinary;
if (path === null) throw new Error("ESPRUINO_BIN_32 and ESPRUINO_BIN_2630 name no Espruino");
const fixture = await openRelayFixture();
const thermostat = await startThermostat(fixture, path, flags.over === "bridge");
const { board, agentOf, callAtOnce } = thermostat;
const life = thermostat.life();
life.type("tell(process.memory().total)");
const isRoomy = (await life.told<number>()) > ROOMY_VARIABLES;

const started = Date.now();
const say = (text: string): void => {
  console.log(`${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s  ${text}`);
};
const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : `${error}`);

const listener = agentOf(fixture.client);
let heardAt: number | null = null;
let ticks = 0;
let silences = 0;
/** `at`: the time from which it expects events; null if it knows that none will come. */
const heard = (at: number | null = Date.now()): void => {
  const silence = heardAt === null ? 0 : Date.now() - heardAt; // its first opening may take a while
  heardAt = at;
  if (silence <= SILENCE_MS) return;
  silences++;
  say(`the listener heard nothing for ${silence} ms`);
};
listener.on("event", (event) => {
  if (event === "tick") ticks++;
  heard();
});
listener.on("gap", (packets) => {
  say(`the listener is told: ${packets} packets lost`);
  heard();
});
listener.on("interrupted", (reason) => {
  say(`the listener is told: ${reason}`);
  heard(null);
});
listener.on("reopened", () => {
  say("the listener is told: events are missing until here");
  heard();
});

const calls = Number(flags.calls);
let answered = 0;
let next = 0;
const visit = async (number: number): Promise<void> => {
  const client = await fixture.connect();
  const agent = agentOf(client);
  for (let i = 0; i < calls / CLIENTS; i++) {
    const at = (number * (calls / CLIENTS) + i) % CALLS.length;
    const [method, params] = CALLS[at] as (typeof CALLS)[number];
    try {
      await agent.call(method, params, { timeoutMs: TIMEOUT_MS });
      answered++;
    } catch (error) {
      say(`client ${number}, ${method}: ${reasonOf(error)}`);
    }
  }
  client.close();
  if (number % 10 === 9) say(`${answered} calls answered, ${ticks} ticks heard`);
};
const caller = async (): Promise<void> => {
  while (calls > 0 && next < CLIENTS) await visit(next++);
};
await Promise.all(Array.from({ length: Number(flags.callers) }, caller));

let answeredAtOnce = 0;
const atOnce = Number(flags["at-once"]);
for (let at = 0; at < atOnce; at += 5) {
  const five = Array.from({ length: 5 }, (_, i) => CALLS[(at + i) % CALLS.length] as never);
  const outcomes = await callAtOnce(five, { timeoutMs: TIMEOUT_MS });
  const lost = outcomes.filter((outcome) => outcome.status === "rejected");
  answeredAtOnce += 5 - lost.length;
  const reasons = lost.map(({ reason }) => reasonOf(reason));
  say(
    `five at once: ${5 - lost.length} answered${reasons.map((reason) => `; ${reason}`).join("")}`,
  );
}
say(`${answeredAtOnce} of ${atOnce} answered, five at once`);

const client = await fixture.connect();
const agent = agentOf(client);
for (const size of SIZES) {
  try {
    await agent.call("echo", { x: "x".repeat(size) }, { timeoutMs: TIMEOUT_MS });
    say(`${size} characters: answered`);
  } catch (error) {
    say(`${size} characters: ${reasonOf(error)}`);
  }
}
let isThere = true;
try {
  const options = { timeoutMs: TIMEOUT_MS, idempotent: true };
  const info = (await agent.call("system.info", {}, options)) as { free_memory: number };
  say(`at the end: ${info.free_memory} bytes free inside a call`);
} catch (error) {
  isThere = false;
  say(`at the end: ${reasonOf(error)}`);
}
heard();
for (const line of life.output.split("\n")) {
  if (/blindrelay |MEMORY|Uncaught/.test(line)) say(`the board printed: ${line}`);
}
say(`${silences} silences over ${SILENCE_MS} ms`);
client.close();
await board.end();
await fixture.end();
const isGood =
  answered === calls && isThere && silences === 0 && (!isRoomy || answeredAtOnce === atOnce);
process.exitCode = isGood ? 0 : 1;
