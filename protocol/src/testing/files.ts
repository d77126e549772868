/**
 * The format of the files in protocol/vectors. Bytes are lower-case hex unless a field is text.
 * `valid` must give the listed result, `invalid` must be refused; each case states its purpose in
 * `comment`.
 *
 * [portable]
 */

export interface Case {
  readonly comment: string;
}

export interface VectorFile<Valid extends Case, Invalid extends Case> {
  readonly comment: string;
  readonly source: string;
  readonly valid: readonly Valid[];
  readonly invalid: readonly Invalid[];
}

export interface HkdfInput extends Case {
  readonly ikm: string;
  readonly salt: string;
  readonly info: string;
  readonly length: number;
}
export interface HkdfCase extends HkdfInput {
  readonly prk: string;
  readonly okm: string;
}

export interface HmacCase extends Case {
  readonly key: string;
  readonly data: string;
  /** The whole MAC, or its beginning if the source truncates it. */
  readonly mac: string;
}

interface AeadInput extends Case {
  /** As passed to the suite: 32 bytes. Suite "2" uses the first 16. */
  readonly key: string;
  readonly nonce: string;
  readonly aad: string;
  /** Ciphertext || tag. */
  readonly sealed: string;
}
interface AeadCase extends AeadInput {
  readonly plaintext: string;
}
export interface AeadFile extends VectorFile<AeadCase, AeadInput> {
  readonly v: string;
}

export interface TextInput extends Case {
  readonly text: string;
}
export interface Base64urlCase extends TextInput {
  readonly bytes: string;
}

/** `bytes` are UTF-8; `json` is the same value as ASCII JSON. */
export interface JsonCase extends Case {
  readonly bytes: string;
  readonly json: string;
}
export interface JsonInput extends Case {
  readonly bytes: string;
}

export interface TokenCase extends Case {
  readonly kind: string;
  readonly bytes: string;
  readonly token: string;
}
export interface TokenRefusal extends Case {
  readonly token: string;
  /** The kind named by its prefix, or null. */
  readonly kind: string | null;
  readonly reason: string;
}

/** Of a program with `size`, of a new `agent_token` without. */
export interface PushCase extends Case {
  readonly push_key: string;
  readonly agent_id: string;
  readonly serial: number;
  readonly size?: number;
  readonly sha256: string;
  readonly proof: string;
}

export interface PacketCase extends TextInput {
  readonly v: string;
  readonly sid: string;
  readonly seq: number;
  readonly sealed: string;
}
/** `refused_by`: "any" reader, or only one in that role; always before any cryptography. */
export interface PacketRefusal extends TextInput {
  readonly refused_by: string;
}

export interface ContractFile {
  readonly tokens: readonly {
    readonly prefix: string;
    readonly bytes: string;
    readonly token: string;
  }[];
  readonly vectors: readonly ContractVector[];
}
interface ContractKeys {
  readonly c2a_key: string;
  readonly c2a_iv: string;
  readonly a2c_key: string;
  readonly a2c_iv: string;
}
export interface ContractVector {
  readonly v: string;
  readonly agent_id: string;
  readonly agent_token: string;
  readonly boot_count: number;
  readonly device_random: string;
  readonly serial_number: string | null;
  readonly C: string;
  readonly prk: string;
  readonly epoch_secret: string;
  readonly A: string;
  readonly sid: string;
  readonly keys_of_C: ContractKeys;
  readonly keys_of_sid: ContractKeys;
  readonly opening: string;
  readonly answer: string;
  readonly data: { readonly plaintext: string; readonly packet: string };
  readonly reply: { readonly plaintext: string; readonly packet: string };
  readonly data_at_last_seq: { readonly plaintext: string; readonly packet: string };
  readonly epoch_secret_after_first_data: string;
  readonly signature_key: string;
  readonly signature_of_opening: string;
}

/**
 * One thing an agent does or receives, and its complete reaction. Absent fields are not checked.
 */
export interface AgentStep extends Case {
  /** Milliseconds of a monotonic clock. */
  readonly ms: number;
  /** A start of the agent; always present in the first step. */
  readonly start?: {
    readonly boot_count: number;
    readonly device_random: string;
    readonly serial_number: string | null;
    /** The most sessions that it holds. */
    readonly max_sessions: number;
    /** How many sessions an epoch stores: W. */
    readonly epoch_sessions: number;
  };
  /** A packet's text that arrives. */
  readonly receive?: string;
  /** Exactly this packet is sent back. */
  readonly answer?: string;
  /** Before anything else, exactly this packet goes to the client of the session that made room. */
  readonly farewell?: string;
  /** This plaintext is delivered; `system.close` ends its session. */
  readonly message?: {
    readonly sid: string;
    readonly plaintext: string;
    readonly gap: number;
    readonly fresh: boolean;
  };
  /** Nothing happens; the reason is one of ours: malformed, version, replay, forged. */
  readonly refused?: string;
  /** The agent seals this plaintext; `sealed` is the packet's text, or null if it must not. */
  readonly seal?: { readonly sid: string; readonly plaintext: string };
  readonly sealed?: string | null;
  /** The sids held after this step, sorted. */
  readonly held?: readonly string[];
}
export interface AgentTrace extends Case {
  readonly v: string;
  readonly agent_id: string;
  readonly agent_token: string;
  readonly steps: readonly AgentStep[];
}

export interface ClientStep extends Case {
  readonly ms: number;
  /** "open", "give_up", or "timeout": time passed and nothing came. */
  readonly command?: string;
  readonly receive?: string;
  readonly seal?: string;
  readonly sealed?: string | null;
  /** Packets sent, in order. */
  readonly sends?: readonly string[];
  readonly opened?: string;
  readonly message?: { readonly plaintext: string; readonly gap: number };
  /** The current C is abandoned, for this reason. */
  readonly abandoned?: string;
  readonly refused?: string;
  /** The client's state afterwards: idle, opening, confirming, open, waiting. */
  readonly state: string;
}
export interface ClientTrace extends Case {
  readonly v: string;
  readonly agent_id: string;
  readonly agent_token: string;
  /** The 16 random bytes of each C, in order of use. */
  readonly random: readonly string[];
  readonly steps: readonly ClientStep[];
}

export interface SessionsFile {
  readonly comment: string;
  readonly source: string;
  readonly agent: readonly AgentTrace[];
  readonly client: readonly ClientTrace[];
}

/** The parsed files by name; omitted ones are not checked. */
export interface VectorFiles {
  readonly contract?: ContractFile;
  readonly hkdf?: VectorFile<HkdfCase, HkdfInput>;
  readonly hmac?: VectorFile<HmacCase, never>;
  readonly chacha20Poly1305?: AeadFile;
  readonly aes128Ccm?: AeadFile;
  readonly base64url?: VectorFile<Base64urlCase, TextInput>;
  readonly json?: VectorFile<JsonCase, JsonInput>;
  readonly tokens?: VectorFile<TokenCase, TokenRefusal>;
  readonly push?: VectorFile<PushCase, never>;
  readonly packets?: VectorFile<PacketCase, PacketRefusal>;
  readonly sessions?: SessionsFile;
}
