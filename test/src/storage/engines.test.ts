/** `agent.storage` in the engines of boards: what one program keeps from start to start. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { eraseTypes, loadDialect } from "@blindrelay/agent-sdk/dialect";
import { Engine, MemoryPreference, XsDevice, xsScript } from "@blindrelay/agent-sdk/engines";
import { ManualTimer, MemoryStorage, seededRandom } from "@blindrelay/agent-sdk/memory";
import { quickjsScript } from "@blindrelay/agent-sdk/testing/build/engine-scripts";
import { SubsetBoard } from "@blindrelay/agent-sdk/testing/espruino-subset";
import { loadQuickjs, QuickjsDevice } from "@blindrelay/agent-sdk/testing/quickjs-device";
import { wsWire } from "@blindrelay/agent-sdk/testing/ws-wire";
import { makeToken } from "@blindrelay/protocol";
import { expect, it } from "vitest";
import { binary, whySkipped as whyNoEspruino } from "../espruino/engine.ts";
import { DEAD_NETWORK } from "../hostile-boards/hardware.ts";
import { whySkipped, withoutEngine, engine as xs } from "../xs/engine.ts";

const KEEPER = fileURLToPath(new URL("keeper.ts", import.meta.url));
const TOO_LONG = "storage keeps texts of up to 256 bytes, not 257";
const TWO_STARTS = [
  [1, false, null, TOO_LONG],
  [2, true, null, TOO_LONG],
];
const CREDENTIALS = {
  url: "ws://127.0.0.1:1/wss",
  agentId: "board",
  relayToken: makeToken("agent", new Uint8Array(32)),
  agentToken: makeToken("e2e", new Uint8Array(32)),
};

/** Of a device's log: what the program wrote. */
const listening = () => {
  const told: unknown[] = [];
  const log = (_level: string, line: string): void => {
    if (line.startsWith("[")) told.push(JSON.parse(line));
  };
  return { told, log };
};

it("is there in QuickJS", async () => {
  const { told, log } = listening();
  const script = await quickjsScript({ keeper: KEEPER });
  const parts = {
    engine: await loadQuickjs(),
    script,
    timer: new ManualTimer(),
    link: DEAD_NETWORK,
    random: seededRandom(1),
    storage: new MemoryStorage(),
    log,
  };
  for (const isFirst of [true, false]) {
    const device = new QuickjsDevice(parts);
    if (isFirst) device.provision(CREDENTIALS.agentToken);
    device.start(CREDENTIALS, "keeper");
    device.end();
  }
  expect(told).toEqual(TWO_STARTS);
});

const plain = (): string => {
  const erased = eraseTypes(readFileSync(KEEPER, "utf8"));
  if ("refused" in erased) throw new Error(erased.refused.rule);
  return erased.code.replace(/^import .*$/m, "");
};

it.skipIf(withoutEngine)(`is there in XS${whySkipped}`, async () => {
  const { told, log } = listening();
  const preference = new MemoryPreference();
  const timer = new ManualTimer();
  const body = plain().replace("export default", "programs.keeper = withStorage(");
  for (const isFirst of [true, false]) {
    const device = new XsDevice({
      ...{ engine: xs, script: await xsScript(), timer, connect: wsWire, preference },
      ...{ maxCompute: 2e8, log },
    });
    device.evaluate(`${body.trimEnd().replace(/;$/, "")});`);
    if (isFirst) device.provision(CREDENTIALS.agentToken);
    device.start(CREDENTIALS, "keeper");
    await device.end();
  }
  expect(told).toEqual(TWO_STARTS);
});

const RUN = `require("program")({ log: (level, line) => { said = JSON.parse(line); } });`;

it("is there in the subset of Espruino", async () => {
  const { toModule } = await loadDialect();
  const files = new Map([["program", toModule(plain())]]);
  const told = [1, 2].map(() => {
    const board = new SubsetBoard(files);
    return JSON.parse(String(board.evaluate(`let said; ${RUN} JSON.stringify(said)`)));
  });
  expect(told).toEqual(TWO_STARTS);
});

for (const isWide of [false, true]) {
  const strings = isWide ? "a real Espruino's Unicode strings" : "a real Espruino";
  it.skipIf(binary === null)(
    `is there in ${strings}${whyNoEspruino(binary, "ESPRUINO_BIN")}`,
    async () => {
      const { toModule } = await loadDialect();
      const engine = new Engine(binary as string);
      try {
        await engine.install("program", toModule(plain(), isWide));
        const told = [];
        for (const _start of [1, 2]) told.push(await engine.ask(`var said; ${RUN} tell(said);`));
        // Characters there are bytes to its limit.
        expect(told).toEqual(TWO_STARTS);
      } finally {
        await engine.close();
      }
    },
  );
}
