/**
 * The entry point of a board that accepts programs, with a way to ask its agent without a relay.
 *
 * [portable]
 */
import { asciiBytes, asciiText } from "@blindrelay/protocol/crypto";
import type { AgentCore } from "../core/agent-core.ts";
import { boardCore, provisionAgent, stopAgent } from "../espruino/agent.ts";
import { bootBoard } from "../espruino/boot-board.ts";
import { socketLinks } from "../espruino/sockets.ts";

const boot = (firmwareVersion?: string): void => bootBoard(socketLinks, firmwareVersion);

/** `told` is called with the answer to this request, once the handler has run. */
const ask = (request: string, told: (answer: string) => void): void =>
  (boardCore() as AgentCore).dispatcher.receive(asciiBytes(request), "sid", 0, (plaintext) =>
    told(asciiText(plaintext)),
  );

export { ask, boot, provisionAgent as provision, stopAgent as stop };
