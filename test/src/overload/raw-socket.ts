/** WebSocket by hand, for frames that no library sends (RFC 6455 section 5.2). */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

const MASKED = 0x80;

/**
 * A frame whose mask is zero, so that its payload is unchanged. `length`: the value in the header.
 */
export const frame = (
  opcode: number,
  payload: Buffer | string = "",
  { fin = true, length = Buffer.byteLength(payload) } = {},
): Buffer => {
  const extended = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const head = Buffer.alloc(2 + extended + 4);
  head[0] = (fin ? 0x80 : 0) | opcode;
  head[1] = MASKED | (extended === 0 ? length : extended === 2 ? 126 : 127);
  if (extended === 2) head.writeUInt16BE(length, 2);
  if (extended === 8) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, Buffer.from(payload)]);
};

export interface RawPeer {
  readonly port: number;
  /** Over TLS, with any certificate. */
  readonly tls?: boolean;
  readonly localAddress?: string;
}

/** A connection whose errors are ignored. Over TLS, what is written waits for the handshake. */
export const rawSocket = ({ port, tls = false, localAddress = "127.0.0.1" }: RawPeer): Socket => {
  const at = { port, host: "127.0.0.1", localAddress };
  const socket = tls ? connectTls({ ...at, rejectUnauthorized: false }) : connect(at);
  return socket.on("error", () => undefined);
};

export const UPGRADE =
  "GET /wss HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";

/** A socket after the upgrade to `/wss`. Nobody reads its bytes yet, and its errors are ignored. */
export const upgraded = async (peer: RawPeer): Promise<Socket> => {
  const socket = rawSocket(peer);
  socket.write(`${UPGRADE}\r\n`);
  await once(socket, "data");
  socket.resume();
  return socket;
};

/** Writes as much as the other side accepts; false if it ended the connection before. */
export const writeAll = (socket: Socket, bytes: Buffer): Promise<boolean> =>
  new Promise((resolve) => {
    if (!socket.writable) resolve(false);
    else socket.write(bytes, (error) => resolve(error === null || error === undefined));
  });
