/** What crosses the border of the engine, as JSON; bytes as base64. Types only. */
import type { AgentStatus } from "../core/link.ts";
import type { StartOptions } from "../moddable/start.ts";
import type { LogLevel } from "../ports.ts";

/** What a project says of itself; the rest of StartOptions is the host's. */
export type XsStart = Pick<
  StartOptions,
  | "url"
  | "agentId"
  | "relayToken"
  | "agentToken"
  | "packetVersion"
  | "deviceKey"
  | "name"
  | "firmwareVersion"
  | "serialNumber"
> & {
  /** It lets its secret be replaced over the relay; `pushKey`: only if that proves the new one. */
  readonly takesRekeys?: boolean;
  readonly pushKey?: string;
};

/** XS asks, and waits for the answer. */
export type Asked =
  | { readonly op: "set"; readonly id: number; readonly ms: number }
  | { readonly op: "clear"; readonly id: number }
  /** A wrapping 32-bit integer. */
  | { readonly op: "ticks" }
  /** The value, or null. */
  | { readonly op: "get"; readonly domain: string; readonly key: string }
  /** Whether it was stored. */
  | { readonly op: "put"; readonly domain: string; readonly key: string; readonly value: string }
  | {
      readonly op: "connect";
      readonly id: number;
      readonly host: string;
      readonly port: number;
      readonly path: string;
    }
  | ({ readonly op: "write" } & Frame)
  | { readonly op: "end"; readonly id: number }
  | { readonly op: "state"; readonly status: AgentStatus }
  | {
      readonly op: "log";
      readonly level: LogLevel;
      readonly message: string;
      readonly fields?: object;
    }
  | { readonly op: "trace"; readonly text: string }
  /** The MAC. */
  | { readonly op: "hmac"; readonly key: string; readonly data: string }
  /** Whole blocks, encrypted under a key of 16 bytes; `iv` is of CBC. */
  | {
      readonly op: "aes";
      readonly mode: "CBC" | "ECB";
      readonly key: string;
      readonly iv: string;
      readonly data: string;
    };

/** XS is told; what its listener returns is the answer. */
export type Told =
  | { readonly op: "fire"; readonly id: number }
  | { readonly op: "opened"; readonly id: number }
  | ({ readonly op: "frame" } & Frame)
  | { readonly op: "ended"; readonly id: number }
  | { readonly op: "provision"; readonly agentToken: string; readonly seed?: string }
  | {
      readonly op: "start";
      readonly options: XsStart;
      readonly program: string;
      readonly native: boolean;
    }
  | { readonly op: "stop" }
  | { readonly op: "held" }
  | { readonly op: "emit"; readonly event: string; readonly data: object }
  | {
      readonly op: "vectors";
      readonly field: string;
      readonly text: string;
      /** With the stand-ins for native crypto. */
      readonly native: boolean;
    };

interface Frame {
  readonly id: number;
  readonly opcode: number;
  readonly final: boolean;
  readonly payload: string;
}
