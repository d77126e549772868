/** A push key in a file of its own, apart from the keyring: who may call is not who may program. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { makeToken } from "@blindrelay/protocol";
import { giveToOwner } from "@blindrelay/protocol/file-owner";
import { checkToken } from "../base/check-token.ts";
import { failing } from "../base/failing.ts";
import { printStatus } from "../base/output.ts";
import { readTextFile } from "../base/text-file.ts";
import { makeWholeFile } from "../base/whole-file.ts";

/** Throws a Failure: usage if it cannot be read, refused if it is another secret, or mistyped. */
export const readPushKey = (path: string): string => {
  const key = readTextFile(path, "the push key").trim();
  checkToken(key, "push", path);
  return key;
};

/** The same; if there is no such file, makes one (0600), and says so. */
export const makePushKey = (path: string): string => {
  if (existsSync(path)) return readPushKey(path);
  const key = makeToken("push", randomBytes(32));
  failing("usage", `the push key ${path} cannot be made: `, () => {
    makeWholeFile(path, `${key}\n`);
    giveToOwner(path, path);
  });
  printStatus(`made the push key ${path}: whoever pushes needs this file, and nobody else does`);
  return key;
};
