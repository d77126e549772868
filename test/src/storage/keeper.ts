/** A device program that keeps something, and logs what it finds at each start. */
import type { Agent } from "@blindrelay/agent-sdk";

const ODD = 'é€🚰 %41 "\\\n';

export default (agent: Agent): void => {
  const storage = agent.storage;
  const starts = Number(storage.get("starts")) + 1;
  const found = storage.get("odd") === ODD;
  storage.set("starts", String(starts));
  storage.set("odd", ODD);
  storage.set("gone", "soon");
  storage.remove("gone");
  let refused = "";
  try {
    storage.set("long", "x".repeat(257));
  } catch (error) {
    refused = (error as Error).message;
  }
  agent.log("warn", JSON.stringify([starts, found, storage.get("gone"), refused]));
};
