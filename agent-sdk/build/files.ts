/**
 * The files for boards by their names: each packet version and any, over WebSockets, over Wi-Fi
 * that the file joins and over a UART, with and without push.
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

const BUILDS: { readonly [way in SdkWay]: (variant: Variant, push: boolean) => Bundle } = {
  network: buildEspruino,
  wifi: buildEspruinoWifi,
  serial: buildEspruinoSerial,
};

export interface BoardFile {
  readonly name: string;
  readonly way: SdkWay;
  readonly build: () => Bundle;
}

export const BOARD_FILES: readonly BoardFile[] = VARIANTS.flatMap((variant) =>
  (["network", "wifi", "serial"] as const).flatMap((way) =>
    [false, true].map((push) => ({
      name: sdkFileName({ way, variant, push }),
      way,
      build: () => BUILDS[way](variant, push),
    })),
  ),
);
