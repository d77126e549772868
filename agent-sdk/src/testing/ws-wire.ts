/** Frames to a real WebSocket server, through `ws`: the wire of a stand-in client in Node. */
import { WebSocket } from "ws";
import type { ConnectWire } from "../engines/wire.ts";

const OP_TEXT = 1;
const OP_CLOSE = 8;
const OP_PONG = 10;
const NO_STATUS = 1005;
const ABNORMAL = 1006;

/** Whole messages arrive as one frame; `ws` does not expose their fragments. */
export const wsWire: ConnectWire = (host, port, path, events) => {
  const socket = new WebSocket(`ws://${host}:${port}${path}`, {
    perMessageDeflate: false,
    autoPong: false,
  });
  let binary = false;
  socket.on("open", () => events.opened());
  socket.on("message", (data: Buffer, isBinary) =>
    events.frame(isBinary ? 2 : OP_TEXT, true, new Uint8Array(data)),
  );
  socket.on("ping", (data) => events.frame(9, true, new Uint8Array(data)));
  socket.on("error", () => {}); // "close" follows
  socket.on("close", (code, reason) => {
    if (code !== ABNORMAL) {
      const payload = code === NO_STATUS ? [] : [code >> 8, code & 255, ...reason];
      events.frame(OP_CLOSE, true, new Uint8Array(payload));
    }
    events.ended();
  });
  return {
    write: (opcode, final, payload) => {
      if (socket.readyState !== WebSocket.OPEN) return;
      if (opcode === OP_CLOSE) {
        const code = payload.length < 2 ? undefined : (payload[0] ?? 0) * 256 + (payload[1] ?? 0);
        socket.close(code, Buffer.from(payload.subarray(2)));
      } else if (opcode === OP_PONG) {
        socket.pong(payload);
      } else {
        if (opcode !== 0) binary = opcode !== OP_TEXT;
        socket.send(payload, { fin: final, binary });
      }
    },
    end: () => socket.terminate(),
  };
};
