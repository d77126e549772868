/**
 * What a device needs to connect, in the format of its firmware. The end-to-end secret
 * is not included: the relay never has it, and the command that provisions the device adds it.
 */
import { EXPORT_MEDIA_TYPES, type ExportFormat } from "@blindrelay/protocol/schema/rest";

interface ExportedAgent {
  readonly agentId: string;
  readonly relayToken: string;
  /** `ws(s)://.../wss` */
  readonly url: string;
  /** `http(s)://...`, which our commands take. */
  readonly base: string;
}

/**
 * The format that a request asks for: by `?format=`, else by the first known type in Accept, else
 * JSON.
 */
export const exportFormat = (
  asked: ExportFormat | undefined,
  accept: string | undefined,
): ExportFormat => {
  if (asked !== undefined) return asked;
  for (const part of (accept ?? "").split(",")) {
    const type = part.split(";")[0]?.trim().toLowerCase();
    for (const [format, mediaType] of Object.entries(EXPORT_MEDIA_TYPES)) {
      if (type === mediaType) return format as ExportFormat;
    }
    if (type === "application/javascript") return "espruino"; // its older name
  }
  return "json";
};

export const exportText = (format: Exclude<ExportFormat, "json">, agent: ExportedAgent): string => {
  const { agentId, relayToken, url, base } = agent;
  switch (format) {
    case "espruino":
      return [
        "// Secret. Put it into blindrelay.json in Storage, with agent_token (e2e_) and v added.",
        `module.exports = ${JSON.stringify({ url, agent_id: agentId, relay_token: relayToken })};`,
        "",
      ].join("\n");
    case "moddable":
      return `${JSON.stringify({ config: { blindrelay: { url, agentId, relayToken } } }, null, 2)}\n`;
    case "env":
      return [
        `BLINDRELAY_URL=${base}`,
        `BLINDRELAY_AGENT_ID=${agentId}`,
        `BLINDRELAY_RELAY_TOKEN=${relayToken}`,
        "",
      ].join("\n");
  }
};
