/**
 * What passed through a port, with times: one JSON document per line, read by `inspect`.
 *
 *   {"record":1,"agent_id","port","at"}                        the head
 *   {"at","from":"device"|"program","data":base64}              bytes
 *   {"at","lost":{"direction","outcome","from","bytes"}}        bytes that are missing
 *   {"at","note":text}                                          the port is away, or back
 */

import { closeSync, openSync, writeSync } from "node:fs";
import type { Loss } from "@blindrelay/client-sdk/serial";
import { messageOf } from "@blindrelay/protocol/command-line";
import { decodeJson, isObject, own } from "@blindrelay/protocol/crypto";
import { failing } from "../base/failing.ts";
import { printStatus } from "../base/output.ts";

export interface Recorder {
  bytes(from: "device" | "program", bytes: Uint8Array): void;
  lost(loss: Loss): void;
  note(text: string): void;
  close(): void;
}

/** Begins a new file, which only its owner reads. Throws a Failure (usage). */
export const openRecord = (path: string, agentId: string, port: string | null): Recorder => {
  const file = failing("usage", `cannot record in ${path}: `, () => openSync(path, "wx", 0o600));
  const write = (line: object): void => {
    const at = new Date().toISOString();
    writeSync(file, `${JSON.stringify({ ...line, at })}\n`);
  };
  failing("usage", `cannot record in ${path}: `, () =>
    write({ record: 1, agent_id: agentId, port }),
  );
  let isOver = false;
  const put = (line: object): void => {
    if (isOver) return;
    try {
      write(line);
    } catch (error) {
      // A full disk ends the record, not the port.
      isOver = true;
      printStatus(`the record ${path} ends here: ${messageOf(error)}`);
    }
  };
  return {
    bytes: (from, bytes) => put({ from, data: Buffer.from(bytes).toString("base64") }),
    lost: (lost) => put({ lost }),
    note: (note) => put({ note }),
    close: () => closeSync(file),
  };
};

/** One line of a record, for a person; null if it is none. */
export const explainRecordLine = (text: string): { value: object; text: string } | null => {
  if (!text.startsWith("{")) return null;
  const value = decodeJson(text);
  if (!isObject(value)) return null;
  const at = own(value, "at");
  if (typeof at !== "string") return null;
  const said = (what: string) => ({ value: value as object, text: `${at}  ${what}` });
  if (own(value, "record") === 1 && typeof own(value, "agent_id") === "string") {
    const port = own(value, "port") ?? "its port";
    return said(`record of ${own(value, "agent_id")}, ${port}`);
  }
  const [from, data, lost, note] = ["from", "data", "lost", "note"].map((name) => own(value, name));
  if ((from === "device" || from === "program") && typeof data === "string") {
    return said(`${from.padEnd(8)}${dump(Buffer.from(data, "base64"))}`);
  }
  if (isObject(lost)) {
    const [way, outcome, first, bytes] = ["direction", "outcome", "from", "bytes"].map((name) =>
      own(lost, name),
    );
    return said(`${outcome}: ${bytes} bytes ${way}, from byte ${first}`);
  }
  return typeof note === "string" ? said(note) : null;
};

const ROW = 16;

/** As hexdump -C shows it. */
const dump = (bytes: Uint8Array): string => {
  const rows: string[] = [];
  for (let at = 0; at < bytes.length; at += ROW) {
    const row = [...bytes.subarray(at, at + ROW)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const text = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "."));
    rows.push(`${hex.padEnd(3 * ROW)} |${text.join("")}|`);
  }
  return rows.join(`\n${" ".repeat("2026-11-27T18:00:00.000Z  ".length + 8)}`);
};
