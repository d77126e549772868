/**
 * The bare packet (section 2), which carries everything that peers send each other. The relay reads
 * only `sid`.
 */
import { type Static, Type } from "typebox";
import { MAX_SEQ } from "../spec.ts";
import { FIELD_P, FIELD_SEQ, FIELD_SID, FIELD_V } from "../wire/names.ts";
import { encodePacket } from "../wire/packet.ts";
import { example } from "./examples.ts";

/** Client to agent and agent to client, through the relay. */
export const PacketMessage = Type.Object(
  {
    [FIELD_V]: Type.String({ description: 'The suite: "1" ChaCha20-Poly1305, "2" AES-128-CCM.' }),
    [FIELD_SID]: Type.String({ description: "`C` in an opening, `C.A` afterwards." }),
    [FIELD_SEQ]: Type.Integer({ minimum: 0, maximum: MAX_SEQ }),
    [FIELD_P]: Type.String({ description: "base64url(ciphertext || 16-byte tag), no padding." }),
  },
  {
    $id: "Packet",
    examples: [
      example(
        encodePacket(
          "1",
          "EBESExQVFhcYGRobHB0eHw.ds-48QSvnxYm4eEeDWcCBg",
          1,
          "DXaCBa2vJdmz2NaMVJt-IW2H1r4MPrvty88r0wuh6p0xf5KLMj1xWDl2lkEb0tXqJObiPhmGvazcvetaltuQ",
        ),
      ),
    ],
  },
);
export type PacketMessage = Static<typeof PacketMessage>;
