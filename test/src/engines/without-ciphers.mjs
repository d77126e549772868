/** Takes from node:crypto what engines with BoringSSL lack. For `node --import`. */
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";

const GONE = /chacha|ccm/;
const { createCipheriv, createDecipheriv, getCiphers } = crypto;
const without =
  (make) =>
  (name, ...rest) => {
    if (GONE.test(name)) throw new Error("Unknown cipher");
    return make(name, ...rest);
  };
crypto.getCiphers = () => getCiphers().filter((name) => !GONE.test(name));
crypto.createCipheriv = without(createCipheriv);
crypto.createDecipheriv = without(createDecipheriv);
syncBuiltinESMExports();
