import { nodeSuite } from "@blindrelay/protocol/suites/node";
import {
  linkConformance,
  storageConformance,
  timerConformance,
} from "../testing/conformance/index.ts";
import { memoryRelays, untilIn } from "../testing/memory-relays.ts";
import { CuttableStorage, ManualTimer, MEDIA, MemoryStorage } from "./index.ts";

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
    return { ...memoryRelays(timer, latencyMs), until: untilIn(timer), end: async () => {} };
  });
}
