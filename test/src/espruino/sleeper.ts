/**
 * A real Espruino that sleeps between wakes, over a stand-in Wi-Fi, with a meter on its connection
 * to the relay. Its sleep is a restart after a timer, as Linux has no deep sleep.
 */
import { once } from "node:events";
import { createServer, connect as dial, type Server, type Socket } from "node:net";
import { Engine, type EngineProcess } from "@blindrelay/agent-sdk/engines";
import { bootCode } from "@blindrelay/agent-sdk/testing/build/boot";
import { buildEspruinoWifi } from "@blindrelay/agent-sdk/testing/build/espruino";
import { cpuMs } from "@blindrelay/agent-sdk/testing/cpu-ms";
import { WIFI_MODULE } from "@blindrelay/tools/testing/repl/wifi";
import { openRelayFixture, type RelayFixture } from "../xs/relay-fixture.ts";

const SSID = "hall 7";
const PASSWORD = "correct horse battery";

/** One link of the board to the relay. */
export interface Metered {
  /** Bytes above TCP, from the board and to it. */
  readonly sent: number;
  readonly received: number;
  /** How often the board sent and the relay then answered: round trips in addition to TCP's own. */
  readonly exchanges: number;
  /** Milliseconds from connect to close. */
  readonly ms: number;
}

/** The board's message at the beginning of a wake. */
export interface Start {
  /** Bytes free in its Storage, before the start writes. */
  readonly free: number;
  /** The stored session token. */
  readonly session: string | null;
}

export interface SleeperOptions {
  readonly sleepMs: number;
  readonly idleMs: number;
}

export class Sleeper {
  readonly fixture: RelayFixture;
  readonly links: Metered[] = [];
  readonly agentId: string;
  readonly agentToken: string;
  life: EngineProcess;
  private readonly engine: Engine;
  private readonly server: Server;

  private constructor(
    fixture: RelayFixture,
    made: { readonly agentId: string; readonly agentToken: string },
    engine: Engine,
    server: Server,
  ) {
    this.fixture = fixture;
    this.agentId = made.agentId;
    this.agentToken = made.agentToken;
    this.engine = engine;
    this.server = server;
    this.life = engine.start("load();");
  }

  static async start(binary: string, options: SleeperOptions): Promise<Sleeper> {
    const fixture = await openRelayFixture();
    const { url, relayToken, ...made } = await fixture.addAgent("sleeper");
    const engine = new Engine(binary);
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    const config = {
      url: `ws://127.0.0.1:${port}/wss`,
      agent_id: made.agentId,
      relay_token: relayToken,
      agent_token: made.agentToken,
      v: "2",
      wifi: { ssid: SSID, password: PASSWORD },
    };
    const { sleepMs, idleMs } = options;
    const say = `print("@@"+JSON.stringify({free:require("Storage").getFree(),session:require("Storage").read("session")||null}));`;
    const files = [
      ["blindrelay.json", JSON.stringify(config)],
      ["blindrelay", buildEspruinoWifi("2").stored],
      [
        "Wifi",
        `global.air={ssid:"${SSID}",password:"${PASSWORD}"};${WIFI_MODULE}exports.disconnect=function(){};`,
      ],
      [
        "program",
        `module.exports = (agent) => {
          agent.handle("echo", (params) => params);
          require("blindrelay").sleepWhenIdle({ sleepMs: ${sleepMs}, idleMs: ${idleMs} });
        };`,
      ],
      [".bootcde", say + bootCode(undefined, false)],
    ] as const;
    for (const [name, content] of files) await engine.install(name, content);
    await engine.ask('require("blindrelay").provision();tell(1);');
    const sleeper = new Sleeper(fixture, made, engine, server);
    const target = Number(new URL(url).port);
    server.on("connection", (board) => sleeper.meter(board, target));
    return sleeper;
  }

  /** The next wake. */
  wake(): Promise<Start> {
    return this.life.told<Start>();
  }

  cpuMs(): number {
    return cpuMs(this.life.pid);
  }

  async end(): Promise<void> {
    await this.engine.close();
    this.server.close();
    await this.fixture.end();
  }

  private meter(board: Socket, target: number): void {
    const relay = dial(target, "127.0.0.1");
    const from = performance.now();
    const seen = { sent: 0, received: 0, exchanges: 0 };
    let last: "board" | "relay" = "relay";
    board.on("data", (bytes) => {
      seen.sent += bytes.length;
      last = "board";
      relay.write(bytes);
    });
    relay.on("data", (bytes) => {
      seen.received += bytes.length;
      if (last === "board") seen.exchanges++;
      last = "relay";
      board.write(bytes);
    });
    for (const socket of [board, relay]) {
      socket.setNoDelay(true);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        board.destroy();
        relay.destroy();
      });
    }
    board.on("close", () => this.links.push({ ...seen, ms: performance.now() - from }));
  }
}
