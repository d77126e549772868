/** Which of the SDK's files a board gets: the smallest one that it can run. */
import type { AeadVersion } from "@blindrelay/protocol/crypto";
import type { Board } from "./board.ts";

/** One packet version, or any, on a board that lacks native SHA-256. */
export type SdkVariant = AeadVersion | "any";

/** How the board reaches the relay: over an existing network, one that it joins, or a bridge. */
export type SdkWay = "network" | "wifi" | "serial";

export interface SdkFile {
  readonly way: SdkWay;
  readonly variant: SdkVariant;
  /** It accepts programs over the relay. */
  readonly push: boolean;
  /** It takes a new secret over the relay; only with push. */
  readonly rekey: boolean;
}

/** For a board that is provisioned. */
export const sdkFileOf = (board: Board): SdkFile => {
  const { sha256, packetVersion, uart, wifi, push, rekey } = board;
  return {
    way: uart !== null ? "serial" : wifi ? "wifi" : "network",
    variant: sha256 && packetVersion !== null ? packetVersion : "any",
    push,
    rekey: push && rekey,
  };
};

/** Its name among the files that agent-sdk's build makes. */
export const sdkFileName = ({ way, variant, push, rekey }: SdkFile): string => {
  const parts = [push && "push", rekey && "rekey"].filter((part) => part !== false);
  return ["blindrelay", ...(way === "network" ? [] : [way]), ...parts, `${variant}.bin`].join("-");
};
