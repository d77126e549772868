/**
 * The project: agent.json says who the agent is, program.js what it does, network.js how it reaches
 * its relay, and manifest.json its version.
 */
import { provisionAgent, startAgent } from "blindrelay";
import { BlockCipher, Digest, Mode } from "crypt";
import HMAC from "hmac";
import config from "mc/config";
import network from "network";
import program from "program";

const crypt = { Digest, HMAC, BlockCipher, Mode };

if (config.provision) {
  provisionAgent(config.agent_token, crypt);
  trace("provisioned: build and flash again, without provision=1\n");
} else {
  startAgent({
    url: config.relay,
    agentId: config.agent_id,
    relayToken: config.relay_token,
    agentToken: config.agent_token,
    packetVersion: config.packet_version,
    firmwareVersion: config.firmware_version,
    program,
    network,
    crypt,
  });
}
