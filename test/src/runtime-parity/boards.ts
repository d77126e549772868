import type { Runtime } from "./board.ts";
import { espruinoBoard, smallEspruinoBoards, subsetBoard } from "./espruino.ts";
import { nodeBoard } from "./node.ts";
import { xsBoard } from "./xs.ts";

export const RUNTIMES: readonly Runtime[] = [
  nodeBoard,
  subsetBoard,
  xsBoard,
  espruinoBoard,
  ...smallEspruinoBoards,
];
