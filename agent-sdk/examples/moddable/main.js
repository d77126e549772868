/**
 * The project: agent.json says who the agent is, program.js what it does, network.js how it reaches
 * its relay, and manifest.json its version.
 */
import { provisionAgent, startAgent } from "blindrelay";
import { BlockCipher, Digest, Mode } from "crypt";
import HMAC from "hmac";
import config from "mc/config";
import Modules from "modules";
import network from "network";
import program from "program";

const crypt = { Digest, HMAC, BlockCipher, Mode };

/** The network interface's own number: two boards with one agent.json then never look the same. */
const chipNumber = () => (Modules.has("net") ? Modules.importNow("net").get("MAC") : undefined);

const inForward = () => Modules.importNow("blindrelay/forward").forward;
const inRekey = () => Modules.importNow("blindrelay/rekey").rekey;

if (config.provision) {
  provisionAgent(config.agent_token, crypt, config.seed);
} else {
  startAgent({
    url: config.relay,
    agentId: config.agent_id,
    relayToken: config.relay_token,
    agentToken: config.agent_token,
    packetVersion: config.packet_version,
    deviceKey: config.device_key,
    ...(/[34]/.test(config.packet_version) && { forward: inForward() }),
    ...(config.rekey !== false && { rekey: inRekey()(config.push_key) }),
    firmwareVersion: config.firmware_version,
    serialNumber: chipNumber(),
    program,
    network,
    crypt,
  });
}
