/**
 * What a device needs to be an agent, in the format of its firmware or a shell, secrets included.
 */
import { Failure } from "@blindrelay/protocol/command-line";
import { isForward } from "@blindrelay/protocol/crypto";
import type { Key } from "../config/profile.ts";
import { httpBase } from "../config/settings.ts";

export const DEVICE_FORMATS = ["env", "espruino", "moddable"] as const;
export type DeviceFormat = (typeof DEVICE_FORMATS)[number];

export interface DeviceIdentity {
  /** The relay: http(s) base or ws(s) address. */
  readonly url: string;
  readonly agentId: string;
  readonly relayToken: string;
  /** Null if no keyring has it: then it is omitted. */
  readonly key: Key | null;
}

/** Of an address that a shell, and whatever else reads such lines, takes as it stands. */
const PLAIN = /^[\w:/.@%+,?=[\]-]*$/;

/** The address may be the relay's word, and must not be a command. */
const shellText = (url: string): string =>
  PLAIN.test(url) ? url : `'${url.replaceAll("'", "%27")}'`;

/** Lines for a shell, with the names of docs/commands.md. */
const asEnvironment = ({ url, agentId, relayToken, key }: DeviceIdentity): string =>
  [
    `BLINDRELAY_URL=${shellText(httpBase(url))}`,
    `BLINDRELAY_AGENT_ID=${agentId}`,
    `BLINDRELAY_RELAY_TOKEN=${relayToken}`,
    ...(key === null
      ? []
      : [
          `BLINDRELAY_AGENT_TOKEN=${key.agent_token}`,
          `BLINDRELAY_PACKET_VERSION=${key.packet_version}`,
        ]),
  ].join("\n");

export const BAD_VERSION = '--packet-version must be "1", "2", "3" or "4"';

/** Its builds compile Curve25519 without a function for it. */
export const NOT_ON_ESPRUINO =
  'Espruino speaks packet versions "1" and "2": "3" and "4" need X25519, which it lacks';

const FORMATS: { readonly [format in DeviceFormat]: (device: DeviceIdentity) => string } = {
  env: asEnvironment,
  /** The members of "blindrelay.json" in a board's Storage. */
  espruino: ({ url, agentId, relayToken, key }) => {
    if (isForward(key?.packet_version)) throw new Failure("usage", NOT_ON_ESPRUINO);
    return `module.exports = ${JSON.stringify({
      url,
      agent_id: agentId,
      relay_token: relayToken,
      ...(key === null ? {} : { agent_token: key.agent_token, v: key.packet_version }),
    })};`;
  },
  /** A manifest to include; `mc/config` then contains the options of agent-sdk/moddable's start. */
  moddable: ({ url, agentId, relayToken, key }) =>
    JSON.stringify(
      {
        config: {
          blindrelay: {
            url,
            agentId,
            relayToken,
            ...(key === null
              ? {}
              : { agentToken: key.agent_token, packetVersion: key.packet_version }),
          },
        },
      },
      null,
      2,
    ),
};

/** The text for one device; it must not be used for another. */
export const deviceText = (format: DeviceFormat, device: DeviceIdentity): string =>
  FORMATS[format](device);
