/** A device program that counts in its storage. */
export default (agent) => {
  let count = Number(agent.storage.get("count") ?? 0);
  agent.handle("add", () => {
    agent.storage.set("count", String(count + 1));
    count += 1;
    return { count };
  });
  agent.handle("count", () => ({ count }));
};
