/**
 * What is sent to each kind of server, as plans for the generator: an end's hello, and what one
 * message of a session looks like when sent and when it arrives. All carry the same packet.
 */
import { randomBytes } from "node:crypto";
import { SESSION_MAX_REQUESTS } from "@blindrelay/protocol";
import {
  encodeAgentAuth,
  encodeClientAuth,
  encodeEnvelope,
  encodePacket,
  PING_TEXT,
  PONG_TEXT,
} from "@blindrelay/protocol/wire";
import type { Message, PairPlan, PeerPlan, WebSocketPlan } from "./generator/messages.ts";

/** The parts of a sid are 22 characters each, as in real sessions. */
export function drawSid(): string {
  return `${randomBytes(16).toString("base64url")}.${randomBytes(16).toString("base64url")}`;
}

/** A packet that is `bytes` long as JSON text. */
export function packet(sid: string, bytes: number): string {
  const empty = encodePacket("1", sid, 1, "");
  return encodePacket("1", sid, 1, "A".repeat(Math.max(22, bytes - empty.length)));
}

const TEXT: WebSocketPlan = { path: "/", binary: false };

/** A plain WebSocket forwarder that first receives sid and side. */
export function forwarderPeer(port: number, sid: string, side: "client" | "agent"): PeerPlan {
  const hello = [{ send: JSON.stringify({ sid, side }), until: "{}" }];
  return { port, ws: TEXT, hello };
}

export function forwarderPair(port: number, bytes: number): PairPlan {
  const sid = drawSid();
  const message = same(packet(sid, bytes));
  return {
    client: forwarderPeer(port, sid, "client"),
    agent: forwarderPeer(port, sid, "agent"),
    toAgent: message,
    toClient: message,
  };
}

/** For an agent that exists on the relay. */
export interface Identity {
  readonly id: string;
  readonly relayToken: string;
}

export function relayAgent(port: number, { id, relayToken }: Identity): PeerPlan {
  const auth = encodeAgentAuth(relayToken, false, id, "bench", null);
  return relayPeer(port, auth);
}

function relayPeer(port: number, auth: string): PeerPlan {
  const ws = { ...TEXT, path: "/wss" };
  const aside = { hear: PING_TEXT, answer: PONG_TEXT };
  return { port, ws, aside, hello: [{ send: auth, until: '"authenticated"' }] };
}

export function relayPair(
  port: number,
  accountToken: string,
  agent: Identity,
  bytes: number,
): PairPlan {
  const sid = drawSid();
  const first = encodePacket("1", sid, 1, "A".repeat(22));
  const message = same(packet(sid, bytes));
  return {
    client: relayPeer(port, encodeClientAuth(accountToken, false, false)),
    agent: relayAgent(port, agent),
    // The envelope binds the sid; packets after it go bare (contract, section 3).
    bind: { send: encodeEnvelope(first, agent.id, null), until: sid },
    most: SESSION_MAX_REQUESTS - 1, // the packet that binds the session is one, too
    toAgent: message,
    toClient: message,
  };
}

export type Carrier = "tcp" | "ws";

export function mqttPeer(port: number, carrier: Carrier, topic: string): PeerPlan {
  const ws: WebSocketPlan = { path: "/mqtt", protocol: "mqtt", binary: true };
  const id = randomBytes(8).toString("hex");
  return {
    port,
    ws: carrier === "ws" ? ws : null,
    hello: [
      // CONNECT: MQTT 3.1.1, clean session, no keep-alive.
      {
        send: mqtt(0x10, `${mqttText("MQTT")}\x04\x02\x00\x00${mqttText(id)}`),
        until: "\x20\x02\x00\x00",
      },
      // SUBSCRIBE: packet 1, QoS 0.
      { send: mqtt(0x82, `\x00\x01${mqttText(topic)}\x00`), until: "\x90\x03\x00\x01\x00" },
    ],
  };
}

export function mqttPair(port: number, carrier: Carrier, bytes: number): PairPlan {
  const sid = drawSid();
  const publish = (topic: string): Message =>
    same(mqtt(0x30, mqttText(topic) + packet(sid, bytes)));
  return {
    client: mqttPeer(port, carrier, `c/${sid}`),
    agent: mqttPeer(port, carrier, `a/${sid}`),
    toAgent: publish(`a/${sid}`),
    toClient: publish(`c/${sid}`),
  };
}

/** A control packet of MQTT 3.1.1: fixed header, remaining length, the rest. */
function mqtt(header: number, rest: string): string {
  let length = "";
  let left = rest.length;
  do {
    length += String.fromCharCode((left & 127) | (left > 127 ? 128 : 0));
    left >>= 7;
  } while (left > 0);
  return String.fromCharCode(header) + length + rest;
}

function mqttText(text: string): string {
  return String.fromCharCode(text.length >> 8, text.length & 255) + text;
}

export function natsPeer(port: number, carrier: Carrier, subject: string): PeerPlan {
  const ws: WebSocketPlan = { path: "/", binary: true };
  const connect = 'CONNECT {"verbose":false,"pedantic":false,"echo":false}\r\n';
  return {
    port,
    ws: carrier === "ws" ? ws : null,
    aside: { hear: "PING\r\n", answer: "PONG\r\n" },
    hello: [
      { send: "", until: "INFO " },
      { send: `${connect}SUB ${subject} 1\r\nPING\r\n`, until: "PONG\r\n" },
    ],
  };
}

export function natsPair(port: number, carrier: Carrier, bytes: number): PairPlan {
  const sid = drawSid();
  const text = packet(sid, bytes);
  const tail = `${text.length}\r\n${text}\r\n`;
  const message = (subject: string): Message => ({
    send: `PUB ${subject} ${tail}`,
    arrives: `MSG ${subject} 1 ${tail}`,
  });
  return {
    client: natsPeer(port, carrier, `c.${sid}`),
    agent: natsPeer(port, carrier, `a.${sid}`),
    toAgent: message(`a.${sid}`),
    toClient: message(`c.${sid}`),
  };
}

function same(text: string): Message {
  return { send: text, arrives: text };
}
