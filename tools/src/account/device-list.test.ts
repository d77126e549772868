import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { readDeviceList } from "./device-list.ts";

const folder = mkdtempSync(join(tmpdir(), "blindrelay-list-"));
afterAll(() => rmSync(folder, { recursive: true }));

const read = (text: string) => {
  const path = join(folder, "devices.csv");
  writeFileSync(path, text);
  return readDeviceList(path);
};

const problemOf = (text: string): string => {
  try {
    read(text);
  } catch (error) {
    return (error as Error).message;
  }
  return "none";
};

it("reads names, ids and labels, with quotes and either line end", () => {
  const text =
    '\ufeffname,id,labels\r\nPump 7,pump-7,site=hall-7;floor=2\r\n"Lamp ""A"", left",,\r\n';
  expect(read(text)).toEqual([
    { line: 2, name: "Pump 7", id: "pump-7", labels: { site: "hall-7", floor: "2" } },
    { line: 3, name: 'Lamp "A", left', id: null, labels: {} },
  ]);
});

it.each([
  ["an empty file", "", /^devices\.csv:1: the first line must be name,id,labels/],
  ["a file without devices", "name,id,labels\n", /^devices\.csv:1: no device/],
  ["what a spreadsheet saves in some countries", "name;id;labels\na;b;\n", /:1: .*, with commas/],
  ["another header", "id,name\na,b\n", /^devices\.csv:1: the first line/],
  ["a line with too few members", "name,id,labels\na,b,\nc,d\n", /^devices\.csv:3: /],
  ["an open quote", 'name,id,labels\na,b,\n"c,d,\n', /^devices\.csv:3: /],
  ["no name", "name,id,labels\n,a,\n", /^devices\.csv:2: name /],
  ["an id with a space", "name,id,labels\na,b,\nc,d e,\n", /^devices\.csv:3: not an agent id/],
  ["a label without a value", "name,id,labels\na,b,site\n", /^devices\.csv:2: .*KEY=VALUE/],
  [
    "a label that JSON cannot carry",
    "name,id,labels\na,b,\nc,d,__proto__=x\n",
    /^devices\.csv:3: __proto__/,
  ],
  ["a label twice", "name,id,labels\na,b,x=1;x=2\n", /^devices\.csv:2: the label x .*twice/],
  ["an id twice", "name,id,labels\na,b,\nc,b,\n", /^devices\.csv:3: the id b .* line 2 too/],
  ["a name twice without ids", "name,id,labels\na,,\na,,\n", /^devices\.csv:3: .*give each an id/],
])("refuses %s, with its line", (_, text, expected) => {
  expect(problemOf(text)).toMatch(expected);
});
