/**
 * `node test/src/espruino/small-board-load.ts`, run by hand: 50 clients one after another make
 * 1,000 calls to the thermostat on an Espruino of 2,630 variables (ESPRUINO_BIN_32, else
 * ESPRUINO_BIN_2630) beside a listener; then five at once; then calls of all sizes. Exit code 1 if
 * one of the 1,000 is not answered, the board does not answer at the end, or the listener received
 * nothing for 5 s without a notification.
 */
import { openRelayFixture } from "../xs/relay-fixture.ts";
import { boardBinary, smallBinary } from "./engine.ts";
import { CALLS, startThermostat } from "./thermostat-board.ts";

const CLIENTS = 50;
const CALLS_EACH = 20;
const SIZES = [0, 16, 64, 128, 200, 256, 300, 320, 330, 384, 500, 700, 1000];
const TIMEOUT_MS = 60_000;
const SILENCE_MS = 5000;

const path = boardBinary ?? smallBinary;
if (path === null) throw new Error("ESPRUINO_BIN_32 and ESPRUINO_BIN_2630 name no Espruino");
const fixture = await openRelayFixture();
const { board, agentOf, callAtOnce } = await startThermostat(fixture, path);

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

let answered = 0;
for (let number = 0; number < CLIENTS; number++) {
  const client = await fixture.connect();
  const agent = agentOf(client);
  for (let i = 0; i < CALLS_EACH; i++) {
    const at = (number * CALLS_EACH + i) % CALLS.length;
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
}

for (let round = 0; round < CALLS.length / 5; round++) {
  const calls = CALLS.slice(round * 5, round * 5 + 5);
  const outcomes = await callAtOnce(calls, { timeoutMs: TIMEOUT_MS });
  const said = outcomes.map((outcome) =>
    outcome.status === "fulfilled" ? "answered" : reasonOf(outcome.reason),
  );
  say(`five at once: ${said.join("; ")}`);
}

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
const outOfMemory = board.life?.output.match(/OUT OF MEMORY|error: MEMORY/g)?.length ?? 0;
say(`${silences} silences over ${SILENCE_MS} ms; out of memory ${outOfMemory} times`);
client.close();
await board.end();
await fixture.end();
const isGood = answered === CLIENTS * CALLS_EACH && isThere && silences === 0;
process.exitCode = isGood ? 0 : 1;
