/**
 * The chip (agent-sdk/chip) for tests: images and flashes in a temporary folder, and a device
 * behind the real `blindrelay bridge` on a real relay.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bakeImage, type Chip, findChip } from "@blindrelay/agent-sdk/testing/chip/build";
import {
  ChipBoot,
  type ChipFigures,
  type ChipOptions,
  type ChipStart,
  figuresOf,
} from "@blindrelay/agent-sdk/testing/chip/chip";
import { chipModules } from "@blindrelay/agent-sdk/testing/chip/modules";
import type { Client } from "@blindrelay/client-sdk/node";
import { BridgeHouse, newsOf } from "../bridge/world.ts";
import type { Running } from "../cli/processes.ts";

const found = await findChip();

/** Of `describe.skipIf`, and for its title. */
export const withoutChip = found.kind === "missing";
export const whySkipped = found.kind === "missing" ? ` (skipped: ${found.reason})` : "";
export const chip = found as Chip;

/** What the device in the tests can take: 32 sessions, and calls that leave room for them. */
export const CHIP_LIMITS = { maxPlaintext: 2048, limits: { maxSessions: 32 } } as const;
/** A busy machine emulates slowly. */
const PATIENCE_MS = 240_000;

export type Caller = (method: string, params?: object) => Promise<unknown>;

/** Images and flashes. */
export class ChipFolder {
  private readonly folder = mkdtempSync(join(tmpdir(), "blindrelay-chip-"));
  private readonly boots: ChipBoot[] = [];

  path(name: string): string {
    return join(this.folder, name);
  }

  /** Of agent-sdk/chip/js/ENTRY.ts. */
  async image(entry: string, options?: Parameters<typeof chipModules>[1]): Promise<string> {
    const image = this.path(`${entry}-${Math.random()}.img`);
    bakeImage(chip, await chipModules(entry, options), image);
    return image;
  }

  async boot(options: Omit<ChipOptions, "chip" | "flash"> & { flash?: string }): Promise<ChipBoot> {
    const boot = await ChipBoot.start({ chip, flash: this.path("flash"), ...options });
    this.boots.push(boot);
    return boot;
  }

  async close(): Promise<void> {
    await Promise.all(this.boots.map((boot) => boot.end()));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The chip behind the bridge, online at a relay. */
export class ChipHouse {
  readonly folder = new ChipFolder();
  boot: ChipBoot | null = null;
  readonly world = new BridgeHouse();
  agentToken = "";
  private server: Server | null = null;
  private bridge: Running | null = null;

  async open(
    image: string,
    options: Pick<ChipOptions, "counting" | "cuts"> & Partial<ChipStart> = {},
  ): Promise<void> {
    const { counting, cuts, ...start } = options;
    await this.world.open();
    const added = await this.world.add("chip");
    this.agentToken = added.agent_token;
    const argument: ChipStart = {
      ...{ agentId: "chip", relayToken: added.api_token, agentToken: added.agent_token },
      ...{ ...CHIP_LIMITS, provision: true, ...start },
    };
    const boot = await this.folder.boot({
      ...{ image, counting, cuts, module: "agent", argument: JSON.stringify(argument) },
    });
    this.boot = boot;
    const line = await boot.line();
    this.server = createServer((socket) => {
      socket.on("error", () => undefined).pipe(line);
      line.pipe(socket);
    });
    await once(this.server.listen(0, "127.0.0.1"), "listening");
    const { port } = this.server.address() as AddressInfo;
    const words = ["bridge", `tcp://127.0.0.1:${port}`, "--mode", "sealed", "--json"];
    this.bridge = this.world.house.start(words, { BLINDRELAY_URL: this.world.house.url });
    await newsOf(this.bridge, "port", "open");
    await boot.printed(/link online/);
  }

  /** One more client, each with a session of its own, and what it calls with. */
  async caller(): Promise<Caller> {
    const client: Client = await this.world.client();
    const agent = client.agent("chip", this.agentToken);
    return (method, params) =>
      agent.call(method, params, { timeoutMs: PATIENCE_MS, idempotent: true });
  }

  async close(): Promise<void> {
    await this.folder.close();
    this.server?.close();
    await this.bridge?.stop();
    await this.world.close();
  }
}

export const readFigures = async (call: Caller): Promise<ChipFigures> =>
  figuresOf((await call("figures")) as number[]);
