/** The Moddable build in the real XS engine. */
import { MemoryPreference, XsDevice } from "@blindrelay/agent-sdk/engines";
import { systemTimer } from "@blindrelay/agent-sdk/node";
import { wsWire } from "@blindrelay/agent-sdk/testing/ws-wire";
import { engine, makeScript, whySkipped, withoutEngine } from "../xs/engine.ts";
import { drawSeed, type Installation, type Runtime } from "./board.ts";

const MAX_COMPUTE = 2e8;
const MAX_MEMORY_KIB = 131072;

/** Made once. */
let script: Promise<string> | null = null;

export const xsBoard: Runtime = {
  title: `XS${whySkipped}`,
  isThere: !withoutEngine,
  runtime: /^moddable xsnap$/,
  maxPlaintext: 8192,
  maxMessage: 12_992,
  maxNesting: 8,
  isEspruino: false,
  tight: false,
  versions: ["1", "2", "3", "4"],
  async make() {
    script ??= makeScript();
    const code = await script;
    const preference = new MemoryPreference();
    let installed: Installation | null = null;
    let life: XsDevice | null = null;
    const makeDevice = (onState?: (state: string, advice: string) => void): XsDevice =>
      new XsDevice({
        engine,
        script: code,
        timer: systemTimer(),
        connect: wsWire,
        preference,
        maxCompute: MAX_COMPUTE,
        maxMemoryKiB: MAX_MEMORY_KIB,
        onState: ({ state, advice }) => onState?.(state, `${advice}`),
      });
    const powerOff = async (): Promise<void> => {
      await life?.end();
      life = null;
    };
    return {
      async install(installation) {
        installed = installation;
      },
      async provision() {
        const device = makeDevice();
        try {
          const { credentials, version } = installed as Installation;
          device.provision(credentials.agentToken, drawSeed(version));
        } finally {
          await device.end();
        }
      },
      powerOn: () =>
        new Promise<void>((resolve, reject) => {
          const { credentials, version, program } = installed as Installation;
          life = makeDevice((state, advice) => {
            if (state === "online") resolve();
            if (state === "refused" || state === "waiting") reject(new Error(advice));
          });
          life.start({ ...credentials, packetVersion: version, name: "board" }, program);
        }),
      powerOff,
      async spoil() {
        for (const key of preference.values.keys()) preference.values.set(key, new ArrayBuffer(4));
      },
      end: powerOff,
    };
  },
};
