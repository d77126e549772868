/**
 * The files for boards by their names: each packet version and any, over WebSockets, over Wi-Fi
 * that the file joins and over a UART, with and without push, and with push and rekey.
 */
import { type SdkWay, sdkFileName } from "../src/board/sdk-file.ts";
import type { Bundle } from "./bundle.ts";
import {
  buildEspruino,
  buildEspruinoSerial,
  buildEspruinoWifi,
  VARIANTS,
  type Variant,
} from "./espruino.ts";

type Build = (variant: Variant, push: boolean, rekey: boolean) => Bundle;

const BUILDS: { readonly [way in SdkWay]: Build } = {
  network: buildEspruino,
  wifi: buildEspruinoWifi,
  serial: buildEspruinoSerial,
};

export interface BoardFile {
  readonly name: string;
  readonly way: SdkWay;
  readonly rekey: boolean;
  readonly build: () => Bundle;
}

const KINDS = [
  { push: false, rekey: false },
  { push: true, rekey: false },
  { push: true, rekey: true },
];

export const BOARD_FILES: readonly BoardFile[] = VARIANTS.flatMap((variant) =>
  (["network", "wifi", "serial"] as const).flatMap((way) =>
    KINDS.map(({ push, rekey }) => ({
      name: sdkFileName({ way, variant, push, rekey }),
      way,
      rekey,
      build: () => BUILDS[way](variant, push, rekey),
    })),
  ),
);
