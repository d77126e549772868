/** A device of the kit as a runtime of the parity tests, on a real relay. */
import { randomBytes } from "node:crypto";
import { messageBytes, SMALL_MAX_NESTING } from "@blindrelay/agent-sdk/embedded";
import { MemoryStorage } from "@blindrelay/agent-sdk/memory";
import { systemTimer, webSocketLinks } from "@blindrelay/agent-sdk/node";
import { drawSeed, type Installation, type Runtime } from "../runtime-parity/board.ts";
import type { MakeDevice } from "./attacked-hardware.ts";
import type { DeviceUnderTest, RuntimeUnderTest } from "./device.ts";

export const parityRuntime = (
  { title, runtime, maxPlaintext, versions }: RuntimeUnderTest,
  makeDevice: () => MakeDevice,
): Runtime => ({
  title,
  isThere: true,
  runtime,
  maxPlaintext,
  maxMessage: messageBytes(maxPlaintext),
  maxNesting: SMALL_MAX_NESTING,
  versions,
  isEspruino: false,
  tight: false,
  async make() {
    const storage = new MemoryStorage();
    let installed: Installation | null = null;
    let life: DeviceUnderTest | null = null;
    const device = (onState: (state: string, advice: string) => void): DeviceUnderTest =>
      makeDevice()({
        timer: systemTimer(),
        link: webSocketLinks(),
        random: (length) => new Uint8Array(randomBytes(length)),
        storage,
        log: () => undefined,
        onState: ({ state, advice }) => onState(state, `${advice}`),
      });
    const powerOff = async (): Promise<void> => {
      life?.end();
      life = null;
    };
    return {
      async install(installation) {
        installed = installation;
      },
      async provision() {
        const first = device(() => undefined);
        try {
          const { credentials, version } = installed as Installation;
          first.provision(credentials.agentToken, drawSeed(version));
        } finally {
          first.end();
        }
      },
      powerOn: () =>
        new Promise<void>((resolve, reject) => {
          const { credentials, version, program } = installed as Installation;
          life = device((state, advice) => {
            if (state === "online") resolve();
            if (state === "refused" || state === "waiting") reject(new Error(advice));
          });
          const url = `${credentials.url.replace("http", "ws")}/wss`;
          life.start({ ...credentials, url, packetVersion: version, name: "board" }, program);
        }),
      powerOff,
      async spoil() {
        for (const name of storage.names()) storage.write(name, "torn");
      },
      end: powerOff,
    };
  },
});
