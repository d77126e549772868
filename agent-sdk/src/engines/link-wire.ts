/**
 * A LinkPort as the wire of a stand-in WebSocket client: whole texts on one side, frames on the
 * other.
 */
import type { LinkPort } from "../ports.ts";
import type { ConnectWire } from "./wire.ts";

const OP_TEXT = 1;
const OP_CLOSE = 8;
const NO_STATUS = 1005;
const ABNORMAL = 1006;

export const linkWire =
  (port: LinkPort): ConnectWire =>
  (host, tcpPort, path, events) => {
    const parts: Uint8Array[] = [];
    const link = port.connect(`ws://${host}:${tcpPort}${path}`, {
      opened: () => events.opened(),
      received: (text) => events.frame(OP_TEXT, true, new Uint8Array(Buffer.from(text))),
      closed: (code, reason) => {
        if (code !== ABNORMAL) {
          const payload = code === NO_STATUS ? [] : [code >> 8, code & 255, ...Buffer.from(reason)];
          events.frame(OP_CLOSE, true, new Uint8Array(payload));
        }
        events.ended();
      },
    });
    return {
      write: (opcode, final, payload) => {
        if (opcode === OP_CLOSE) {
          link.close((payload[0] ?? 0) * 256 + (payload[1] ?? 0), "");
        } else if (opcode < OP_CLOSE) {
          parts.push(payload);
          if (final) link.send(Buffer.concat(parts.splice(0)).toString());
        }
      },
      end: () => link.close(1006, ""),
    };
  };
