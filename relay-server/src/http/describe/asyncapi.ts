/**
 * `/api/asyncapi.json`: the link's messages and their directions, from the contract's single table.
 */
import { MAX_MESSAGE_BYTES, PING_INTERVAL_MS, WSS_PATH } from "@blindrelay/protocol";
import { MESSAGES, type MessageEntry } from "@blindrelay/protocol/schema";

const DESCRIPTION = `What agents and clients say to a blindrelay, and it to them, on one WebSocket at \`${WSS_PATH}\`.
Every message is one JSON text of at most ${MAX_MESSAGE_BYTES} bytes. The first is \`auth\`; the relay pings every ${PING_INTERVAL_MS / 1000} seconds.
Directions are the relay's: *receive* is what a peer sends, *send* what the relay sends.`;

const entries = Object.entries(MESSAGES) as [string, MessageEntry][];

/** The document as a JSON object. `host`: where this relay was reached, as `host:port`. */
export const asyncapiDocument = (version: string, host: string, secure: boolean): object => ({
  asyncapi: "3.0.0",
  info: {
    title: "blindrelay",
    version,
    description: DESCRIPTION,
    license: { name: "MIT" },
  },
  defaultContentType: "application/json",
  servers: {
    relay: { host, protocol: secure ? "wss" : "ws", description: "This relay" },
  },
  channels: {
    link: {
      address: WSS_PATH,
      title: "The link of a peer",
      servers: [{ $ref: "#/servers/relay" }],
      messages: Object.fromEntries(
        entries.map(([name]) => [name, { $ref: `#/components/messages/${name}` }]),
      ),
      bindings: { ws: { method: "GET", bindingVersion: "0.1.0" } },
    },
  },
  operations: {
    ...Object.fromEntries(entries.flatMap(([name, entry]) => operationsOf(name, entry))),
  },
  components: {
    messages: Object.fromEntries(
      entries.map(([name, { schema, summary }]) => [name, messageOf(name, schema, summary)]),
    ),
  },
});

const operationsOf = (name: string, { from, summary }: MessageEntry): [string, object][] => {
  const operation = (action: "receive" | "send") => ({
    action,
    channel: { $ref: "#/channels/link" },
    summary,
    messages: [{ $ref: `#/channels/link/messages/${name}` }],
    ...(name === "auth" ? { reply: REPLY } : {}),
  });
  const title = name.charAt(0).toUpperCase() + name.slice(1);
  return [
    ...(from === "relay" ? [] : [[`receive${title}`, operation("receive")] as [string, object]]),
    ...(from === "peer" ? [] : [[`send${title}`, operation("send")] as [string, object]]),
  ];
};

const REPLY = {
  channel: { $ref: "#/channels/link" },
  messages: [
    { $ref: "#/channels/link/messages/authSuccess" },
    { $ref: "#/channels/link/messages/authFailure" },
  ],
};

const messageOf = (name: string, schema: object, summary: string): object => {
  const { $id, examples, ...payload } = plain(schema);
  return {
    name,
    title: $id,
    summary,
    payload,
    examples: (examples ?? []).map((example) => ({ payload: example })),
  };
};

const plain = (schema: object): { $id?: string; examples?: unknown[] } =>
  JSON.parse(JSON.stringify(schema)) as { $id?: string; examples?: unknown[] };
