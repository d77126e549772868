/**
 * Runs on the chip, in place of a project's main.js: an agent on a serial line. Its argument is
 * JSON (ChipStart).
 */
import type { RuntimePorts } from "../../src/embedded/host.ts";
import {
  asciiBytes,
  crc32,
  KEPT_NAMES,
  messageBytes,
  provisionAgent,
  startAgent,
} from "../../src/moddable/core.ts";
import { moddableSuite } from "../../src/moddable/suite.ts";
import type { ChipStart } from "../chip.ts";
import { FrameReader, maxBody, plainChecksum, SerialLinks, startWithPushes } from "./edge.ts";
import { crypt, random, slotsOf, storage, timer } from "./ports.ts";
import { program } from "./program.ts";

const start = JSON.parse(chip.argument()) as ChipStart;
const suite = moddableSuite(crypt);
if (start.provision && storage.read("boot.0") === null)
  provisionAgent({ storage, suite }, start.agentToken);
const maxMessage = messageBytes(start.maxPlaintext);

/** Texts that are others at every start. */
const bootCount = (): string => `${storage.read("boot.0")} ${storage.read("boot.1")}`;

let links: SerialLinks | null = null;
const ports: RuntimePorts = {
  timer,
  random,
  storage,
  suite,
  log: (level, message, fields) => {
    if (start.verbose || level === "error")
      chip.print(`${level} ${message} ${JSON.stringify(fields ?? {})}`);
  },
  link: {
    connect: (url, events) => {
      links ??= new SerialLinks({
        write: (bytes) => chip.write(bytes),
        timer,
        life: crc32(asciiBytes(bootCount())) >>> 0,
        checksum: plainChecksum,
        maxMessage,
        window: maxMessage,
      });
      return links.connect(url, events);
    },
  },
};
const options = {
  url: "ws://bridge/wss",
  runtime: "moddable chip",
  keptNames: KEPT_NAMES,
  ...start,
  program,
};
const { pushes } = start;
if (pushes) chip.watch(pushes.watchdogMs);
const core = pushes
  ? startWithPushes(ports, options, slotsOf(chip.why()), null)
  : startAgent(ports, options);
const reader = new FrameReader(maxBody(maxMessage), plainChecksum, (type, body) =>
  links?.receiveFrame(type, body),
);
globalThis.onData = (bytes) => reader.receive(new Uint8Array(bytes));
core.link.onState(({ state }) => chip.print(`link ${state}`));
chip.print(`started ${bootCount()}`);
