/** What tokens guarantee over all nodes: when links end, and how many requests are accepted. */
import type { RelayNode } from "../relays.ts";

const SESSION_REQUESTS = 10_000;
/** How long to wait for late messages. */
const QUIET_MS = 6000;

const post = async (node: RelayNode, path: string, token: string, body: object = {}) => {
  const answer = await fetch(`${node.url}/api/v1${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });
  // biome-ignore lint/suspicious/noExplicitAny: answers of several routes
  return (await answer.json()) as any;
};

/** An authenticated link. */
const connect = async (node: RelayNode, auth: object): Promise<WebSocket> => {
  const socket = new WebSocket(`${node.url.replace("http", "ws")}/wss`);
  await new Promise((resolve) => socket.addEventListener("open", resolve));
  const answered = new Promise((resolve) =>
    socket.addEventListener("message", resolve, { once: true }),
  );
  socket.send(JSON.stringify({ type: "auth", ...auth }));
  await answered;
  return socket;
};

/** Rotates a token on each node, with a link to each: milliseconds until each link has ended. */
export const rotate = async (nodes: readonly RelayNode[], account: string): Promise<number[]> => {
  const took: number[] = [];
  for (const on of nodes) {
    for (const at of nodes) {
      const { agent_id, api_token } = await post(on, "/agents", account, { name: "rotated" });
      const link = await connect(at, { client_type: "agent", agent_id, api_token });
      const ended = new Promise((resolve) => link.addEventListener("close", resolve));
      const startedMs = performance.now();
      await post(on, `/agents/${agent_id}/rotate-token`, account);
      await ended;
      took.push(Math.round(performance.now() - startedMs));
    }
  }
  return took;
};

/** Uses one session token on all nodes at once: returns how many requests are accepted. */
export const spend = async (nodes: readonly RelayNode[], account: string): Promise<number> => {
  const [first] = nodes as [RelayNode];
  const { agent_id, api_token } = await post(first, "/agents", account, { name: "counted" });
  const device = await connect(first, { client_type: "agent", agent_id, api_token });
  let passed = 0;
  let lastMs = performance.now();
  device.addEventListener("message", ({ data }) => {
    const { type } = JSON.parse(data);
    if (type === "ping") device.send('{"type":"pong"}');
    if (type !== "relay") return;
    passed += 1;
    lastMs = performance.now();
  });
  const { session_token } = await post(first, "/auth/session", account);
  const each = async (node: RelayNode, at: number) => {
    const link = await connect(node, { client_type: "client", session_token });
    const ended = new Promise<void>((resolve) => link.addEventListener("close", () => resolve()));
    for (let i = 0; i < SESSION_REQUESTS && link.readyState === WebSocket.OPEN; i += 1) {
      const request_id = `${at}-${i}`;
      link.send(JSON.stringify({ type: "relay", agent_id, payload: "x", request_id }));
      // Below the rate limit of one connection.
      if (i % 50 === 49) await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await ended;
  };
  await Promise.all(nodes.map(each));
  while (performance.now() - lastMs < QUIET_MS) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  device.close();
  return passed;
};
