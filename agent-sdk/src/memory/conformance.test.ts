import { nodeSuite } from "@blindrelay/protocol/suites/node";
import {
  linkConformance,
  type RelaySide,
  storageConformance,
  timerConformance,
} from "../conformance/index.ts";
import { CuttableStorage, ManualTimer, MEDIA, MemoryStorage, memoryNetwork } from "./index.ts";

/** Moves time until something is true; a world where it never is ends the test. */
const untilIn = (timer: ManualTimer) => async (done: () => boolean) => {
  for (let i = 0; i < 10000 && !done(); i++) timer.advance(1);
  if (!done()) throw new Error("it never happened");
};

storageConformance("memory", nodeSuite(), () => {
  const storage = new MemoryStorage();
  return { storage, reopen: () => storage };
});

for (const medium of MEDIA) {
  storageConformance(`cuttable, ${medium}`, nodeSuite(), () => {
    const storage = new CuttableStorage(medium);
    return { storage, reopen: () => storage };
  });
}

timerConformance("manual", () => {
  const timer = new ManualTimer();
  return { timer, until: untilIn(timer) };
});

for (const latencyMs of [0, 40]) {
  linkConformance(`memory, ${latencyMs} ms`, async () => {
    const timer = new ManualTimer();
    const relays: RelaySide[] = [];
    const port = memoryNetwork({
      timer,
      latencyMs,
      accept: (end) => {
        if (end.url.includes("dead")) return false;
        const received: string[] = [];
        let closedWith: number | null = null;
        end.received = (text) => received.push(text);
        end.closed = (code) => {
          closedWith = code;
        };
        relays.push({
          received,
          get closedWith() {
            return closedWith;
          },
          send: (text) => end.send(text),
          close: (code, reason) => end.close(code, reason),
        });
        return true;
      },
    });
    return {
      port,
      url: "memory://relay",
      deadUrl: "memory://dead",
      relays,
      until: untilIn(timer),
      end: async () => {},
    };
  });
}
