/** Runs in XS, in place of `device.network`: frames leave and arrive over the bridge. */
import type { ConnectWire, WireEvents } from "../../engines/wire.ts";
import type { TimerPort } from "../../ports.ts";
import { ecmaWebSocket } from "../ecma-websocket.ts";
import { ask, fromBase64, hear, toBase64 } from "./bridge.ts";
import Time from "./time.ts";
import Timer from "./timer.ts";

const wires = new Map<number, WireEvents>();
let last = 0;

hear("opened", ({ id }) => wires.get(id)?.opened());
hear("frame", ({ id, opcode, final, payload }) =>
  wires.get(id)?.frame(opcode, final, fromBase64(payload)),
);
hear("ended", ({ id }) => {
  wires.get(id)?.ended();
  wires.delete(id);
});

const connect: ConnectWire = (host, port, path, events) => {
  last++;
  const id = last;
  wires.set(id, events);
  ask({ op: "connect", id, host, port, path });
  return {
    write: (opcode, final, payload) => {
      ask({ op: "write", id, opcode, final, payload: toBase64(payload) });
    },
    end: () => {
      ask({ op: "end", id });
    },
  };
};

const timer: TimerPort = {
  now: () => Time.ticks,
  set: (ms, fn) => Timer.set(fn, ms),
  clear: () => {},
};

export const network = { ws: { io: ecmaWebSocket(connect, timer) } };
