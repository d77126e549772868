/**
 * The chip: XS on an emulated Cortex-M3, from the C sources in the npm package @agoric/xsnap and
 * our host in this folder. Built once for the same inputs into node_modules/.cache, and reused
 * afterwards; nothing of XS enters the repository or a package.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { builtOnce } from "../build/built-once.ts";

/** Command and Debian's package with it. */
const TOOLS: { readonly [command: string]: string } = {
  "arm-none-eabi-gcc": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
  "qemu-system-arm": "qemu-system-arm",
  cc: "build-essential",
  make: "build-essential",
};

export interface Chip {
  /** The program, for the flash of the chip. */
  readonly elf: string;
  /** Compiles a module: its file -> byte code (host/code.h), on standard output. */
  readonly compile: string;
  /** The compiler and the emulator, as the figures name them. */
  readonly tools: string;
}

export type FoundChip =
  | ({ readonly kind: "found" } & Chip)
  | { readonly kind: "missing"; readonly reason: string };

export interface ChipModule {
  readonly name: string;
  readonly source: string;
  /** Whether it runs while the machine is baked, so that what it creates is never in RAM. */
  readonly preload?: boolean;
}

const host = join(import.meta.dirname, "host");
const makefile = join(import.meta.dirname, "Makefile");
const compiler = join(import.meta.dirname, "compile/main.c");
const xsnap = dirname(createRequire(import.meta.url).resolve("@agoric/xsnap/package.json"));

const firstLine = (command: string): string | null => {
  const { status, stdout } = spawnSync(command, ["--version"], { encoding: "utf8" });
  return status === 0 ? (stdout.split("\n")[0] as string) : null;
};

const hashOf = (texts: readonly string[], files: readonly string[]): string => {
  const hash = createHash("sha256").update(texts.join("\n"));
  for (const file of files) hash.update(`\n${file.length}\n`).update(readFileSync(file));
  return hash.digest("hex").slice(0, 16);
};

const make =
  (target: string, variables: readonly string[]) =>
  (work: string): string | null => {
    mkdirSync(work, { recursive: true });
    const words = ["-s", "-j2", "-f", makefile, target, `HOST=${host}`, ...variables];
    const { status, stderr } = spawnSync("make", words, { cwd: work, encoding: "utf8" });
    return status === 0
      ? null
      : `XS does not build for the chip here: ${stderr.trim().slice(-800)}`;
  };

/** Finds the chip's program, or builds it, which takes 15 s on two cores. */
export const findChip = async (): Promise<FoundChip> => {
  const versions: string[] = [];
  for (const [command, needed] of Object.entries(TOOLS)) {
    const version = firstLine(command);
    if (version === null) {
      return { kind: "missing", reason: `there is no ${command}: apt-get install ${needed}` };
    }
    versions.push(version);
  }
  const xs = join(xsnap, "moddable/xs");
  const common = [
    makefile,
    join(xsnap, "package.json"),
    join(host, "platform.h"),
    join(host, "code.h"),
    compiler,
  ];
  const engine = await builtOnce(
    `chip-xs-${hashOf(versions, common)}`,
    "compile",
    make("engine", [`XS=${xs}`]),
  );
  if (engine.kind === "missing") return engine;
  const folder = dirname(engine.path);
  const own = readdirSync(host)
    .sort()
    .map((file) => join(host, file));
  const elf = await builtOnce(
    `chip-${hashOf([folder], own)}`,
    "chip.elf",
    make("chip.elf", [`XS=${xs}`, `ENGINE=${folder}`]),
  );
  if (elf.kind === "missing") return elf;
  const tools = `${versions[0]}; ${versions[1]}`;
  return { kind: "found", elf: elf.path, compile: engine.path, tools };
};

const counted = (bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer>[] => {
  const size = new Uint8Array(4);
  new DataView(size.buffer).setUint32(0, bytes.length, true);
  return [size, bytes];
};
const flag = (on: boolean): Uint8Array<ArrayBuffer> => Uint8Array.of(on ? 1 : 0, 0, 0, 0);

/** Arguments of the emulator for a boot; `words` say what for (host/main.c). */
export const bootArguments = (chip: Chip, words: readonly string[]): string[] => [
  ...["-M", "mps2-an385", "-display", "none", "-monitor", "none", "-kernel", chip.elf],
  "-semihosting-config",
  `enable=on,target=native${["chip", ...words].map((word) => `,arg=${word.replaceAll(",", ",,")}`).join("")}`,
];

/** The same for its image, which is where the program looks for it. */
export const imageArguments = (image: string): string[] => [
  "-device",
  `loader,file=${image},addr=0x21000000,force-raw=on`,
];

/** Runs `use` with a folder that is removed afterwards. */
const inFolder = <T>(use: (folder: string) => T): T => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-chip-"));
  try {
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** A module as the file of byte code that a chip takes (host/code.h). Throws if it is none. */
export const compileForChip = (chip: Chip, source: string): Uint8Array<ArrayBuffer> =>
  inFolder((folder) => {
    const file = join(folder, "module.js");
    writeFileSync(file, source);
    return Uint8Array.from(execFileSync(chip.compile, [file], { maxBuffer: 2 ** 24 }));
  });

/** The image of a device with these modules, baked on the chip itself. */
export const bakeImage = (chip: Chip, modules: readonly ChipModule[], image: string): void =>
  inFolder((folder) => {
    const parts = [Uint8Array.of(modules.length, 0, 0, 0)];
    for (const { name, source, preload = false } of modules)
      parts.push(flag(preload), ...counted(Buffer.from(name)), compileForChip(chip, source));
    const list = join(folder, "modules");
    writeFileSync(list, Buffer.concat(parts));
    execFileSync(
      "qemu-system-arm",
      [...bootArguments(chip, ["bake", list, image]), "-serial", "null"],
      { stdio: ["ignore", "ignore", "pipe"] },
    );
  });
