/**
 * How the agent reaches a relay at wss:// or https://. The relay's certificate must be issued by
 * the authority in `relay_ca` of agent.json.
 */
import TLSSocket from "embedded:io/socket/tcp/tls";
import config from "mc/config";

const { ws } = device.network;
const secure = { certificate: Uint8Array.fromBase64(config.relay_ca) };
export default { wss: { ...ws, socket: { io: TLSSocket, TCP: ws.socket, secure } } };
