/** What an Espruino board reports of itself, and the files in its Storage. */
import { type AeadVersion, isObject, own } from "@blindrelay/protocol/crypto";
import { isList, isName, isNumber, isText, noAnswer } from "./answer.ts";
import type { EspruinoRepl } from "./repl.ts";

export interface Board {
  /** Such as "2v29". */
  readonly version: string;
  /** Such as "ESP32" or "PUCKJS". */
  readonly board: string;
  readonly serial: string;
  readonly modules: readonly string[];
  readonly sha1: boolean;
  readonly sha256: boolean;
  readonly aes: boolean;
  readonly freeBytes: number;
  /** Bytes of erased files that `compact` recovers; null if the firmware cannot tell. */
  readonly trashBytes: number | null;
  readonly variables: number;
  /** Whether its strings hold every character, as on Bangle.js; elsewhere they hold UTF-8. */
  readonly isWide: boolean;
  readonly files: readonly string[];
  /** From the configuration in its Storage; null if it was not provisioned. */
  readonly agentId: string | null;
  /** Likewise: its packet version; null if there is none. */
  readonly packetVersion: AeadVersion | null;
  /** Likewise: the UART used by a bridge; null if it has a network. */
  readonly uart: { readonly port: string; readonly baud: number } | null;
  /** Likewise: whether the SDK joins its Wi-Fi. */
  readonly wifi: boolean;
  /** Likewise: whether it accepts programs over the relay. */
  readonly push: boolean;
  /** Likewise: whether these must be proven with a push key. */
  readonly guarded: boolean;
  /** Likewise: whether its secret can be replaced over the relay. */
  readonly rekey: boolean;
  /** Where its console is, such as "USB"; null if the firmware cannot tell. */
  readonly console: string | null;
}

export const CONFIG_FILE = "blindrelay.json";

const QUESTION = `(function(){
var s=require("Storage"),c,g={},e=process.env;
try{c=require("crypto")}catch(x){}
try{g=JSON.parse(s.read("${CONFIG_FILE}"))||{}}catch(x){}
return {version:e.VERSION,board:e.BOARD,serial:""+(e.SERIAL||""),modules:(e.MODULES||"").split(","),
sha1:!!(c&&c.SHA1),sha256:!!(c&&c.SHA256),aes:!!(c&&c.AES),
freeBytes:s.getFree(),trashBytes:s.getStats?s.getStats().trashBytes:null,
variables:process.memory().total,isWide:"\\u20ac".charCodeAt(0)===8364,files:s.list(),agentId:g.agent_id||null,packetVersion:g.v||null,
uart:g.serial?{port:g.serial.port,baud:g.serial.baud}:null,wifi:!!g.wifi,push:g.push!==false,guarded:!!g.push_key,rekey:g.rekey===true,console:E.getConsole?E.getConsole():null}
})()`.replaceAll("\n", "");

const isTexts = isList(isText);

/**
 * Null for what no Espruino says of itself. What stands in the board's configuration may be broken,
 * which provisioning it again mends: that is as if it were not there.
 */
const asBoard = (said: unknown): Board | null => {
  if (!isObject(said)) return null;
  const is = (name: string): boolean => own(said, name) === true;
  const [version, board, modules, files] = ["version", "board", "modules", "files"].map((name) =>
    own(said, name),
  );
  const [freeBytes, variables] = [own(said, "freeBytes"), own(said, "variables")];
  if (!isName(version) || !isName(board) || !isTexts(modules) || !isTexts(files)) return null;
  if (!isNumber(freeBytes) || !isNumber(variables)) return null;
  const [serial, trashBytes] = [own(said, "serial"), own(said, "trashBytes")];
  const [agentId, packetVersion] = [own(said, "agentId"), own(said, "packetVersion")];
  const [console, uart] = [own(said, "console"), own(said, "uart")];
  const [port, baud] = isObject(uart) ? [own(uart, "port"), own(uart, "baud")] : [];
  return {
    version,
    board,
    serial: isName(serial) ? serial : "",
    modules,
    sha1: is("sha1"),
    sha256: is("sha256"),
    aes: is("aes"),
    freeBytes,
    trashBytes: isNumber(trashBytes) ? trashBytes : null,
    variables,
    isWide: is("isWide"),
    files,
    agentId: isName(agentId) ? agentId : null,
    packetVersion: packetVersion === "1" || packetVersion === "2" ? packetVersion : null,
    uart: isName(port) && isNumber(baud) ? { port, baud } : null,
    wifi: is("wifi"),
    push: is("push"),
    guarded: is("guarded"),
    rekey: is("rekey"),
    console: isName(console) ? console : null,
  };
};

/** Rejects with a Failure (device). */
export const readBoard = async (board: EspruinoRepl): Promise<Board> => {
  const found = asBoard(await board.evaluate(QUESTION));
  if (found === null) throw noAnswer(board);
  return found;
};
