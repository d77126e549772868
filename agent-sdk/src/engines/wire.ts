/** The connection below a WebSocket client: whole frames in both directions. */

export interface Wire {
  write(opcode: number, final: boolean, payload: Uint8Array): void;
  end(): void;
}

export interface WireEvents {
  opened(): void;
  frame(opcode: number, final: boolean, payload: Uint8Array): void;
  /** The connection is gone, or never came to be. */
  ended(): void;
}

export type ConnectWire = (host: string, port: number, path: string, events: WireEvents) => Wire;
