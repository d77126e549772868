/** `/agents`: the devices of an account. */
import { type Static, Type } from "typebox";
import {
  LABEL_KEY_PATTERN,
  MAX_LABEL_LENGTH,
  MAX_LABELS,
  MAX_SELECTOR_LENGTH,
} from "../../selector.ts";
import { MAX_METADATA_BYTES } from "../../spec.ts";
import { OneOf } from "../one-of.ts";
import { AgentId, AgentToken, PageQuery, page, Timestamp } from "./common.ts";
import { Nullable, PlainText } from "./parts.ts";

const AgentName = PlainText(128, "For people; no control characters.", "Pump in the cellar");

const Metadata = Type.Record(Type.String(), Type.Unknown(), {
  description: `Any JSON object, at most ${MAX_METADATA_BYTES} bytes as text.`,
  examples: [{ site: "cellar" }],
});

const Labels = Type.Record(
  Type.String({ pattern: LABEL_KEY_PATTERN }),
  Type.String({ maxLength: MAX_LABEL_LENGTH, pattern: "^[^\\u0000-\\u001f\\u007f]*$" }),
  {
    additionalProperties: false,
    maxProperties: MAX_LABELS,
    description: `What selectors choose by, at most ${MAX_LABELS}. The relay reads them.`,
    examples: [{ site: "hall-7" }],
  },
);

export const Agent = Type.Object({
  agent_id: AgentId,
  name: AgentName,
  online: Type.Boolean({ description: "Whether it has an authenticated link to the relay now." }),
  last_seen: Nullable(Timestamp),
  runtime: Nullable(
    Type.String({
      description: "As the agent reported at its last login.",
      examples: ["espruino 2v25 ESP32"],
    }),
  ),
  firmware_version: Nullable(
    Type.String({
      description: "Of the firmware that has booted, as the agent reported at its last login.",
      examples: ["1.4.0"],
    }),
  ),
  created_at: Timestamp,
  labels: Labels,
  metadata: Metadata,
});
export type Agent = Static<typeof Agent>;

/** Unchecked on purpose: an identifier that cannot exist is 404 like any other unknown one. */
export const AgentParams = Type.Object({ agent_id: Type.String({ examples: ["pump-7"] }) });
export type AgentParams = Static<typeof AgentParams>;

export const AgentCreate = Type.Object({
  name: AgentName,
  agent_id: Type.Optional(AgentId),
  labels: Type.Optional(Labels),
  metadata: Type.Optional(Metadata),
});
export type AgentCreate = Static<typeof AgentCreate>;

export const AgentCreated = Type.Object({
  ...Agent.properties,
  api_token: AgentToken,
});
export type AgentCreated = Static<typeof AgentCreated>;

/** `labels` and `metadata` are replaced as a whole. */
export const AgentPatch = Type.Object({
  name: Type.Optional(AgentName),
  labels: Type.Optional(Labels),
  metadata: Type.Optional(Metadata),
});
export type AgentPatch = Static<typeof AgentPatch>;

const Prefix = (what: string, example: string) => Type.Optional(PlainText(128, what, example));

/**
 * The page and the filters. A page may contain fewer than `limit` agents although more follow,
 * because presence is known from links and cannot be queried: only a `next_cursor` of null is the
 * end.
 */
export const AgentQuery = Type.Object({
  ...PageQuery.properties,
  online: Type.Optional(Type.Boolean()),
  name: Prefix("How the name begins; case counts.", "Pump"),
  runtime: Prefix("How the runtime begins.", "espruino"),
  firmware_version: Prefix("The whole version.", "1.4.0"),
  where: Type.Optional(
    Type.String({
      maxLength: MAX_SELECTOR_LENGTH,
      pattern: "^[^\\u0000-\\u001f\\u007f]*$",
      description:
        "A selector: conditions joined by commas, all of which must hold, such as label.site=hall-7,firmware<1.5.0. Keys: id, name, runtime, firmware, online, label.KEY; operators: =, !=, ~ (a glob with *), < and >= (versions).",
      examples: ["label.site=hall-7,firmware<1.5.0"],
    }),
  ),
});
export type AgentQuery = Static<typeof AgentQuery>;

export const AgentPage = page(Agent);
export type AgentPage = Static<typeof AgentPage>;

export const RotateAgentAnswer = Type.Object({
  agent_id: AgentId,
  api_token: AgentToken,
  rotated_at: Timestamp,
});
export type RotateAgentAnswer = Static<typeof RotateAgentAnswer>;

export const AgentExport = Type.Object({
  agent_id: AgentId,
  api_token: AgentToken,
  relay_url: Type.String({
    description: "What firmware connects to: ws(s)://.../wss",
    examples: ["wss://relay.example/wss"],
  }),
  created_at: Timestamp,
});
export type AgentExport = Static<typeof AgentExport>;

/**
 * The format of the export: JSON, a module for Espruino, Moddable's manifest, or lines for a shell.
 */
export const ExportFormat = OneOf(["json", "espruino", "moddable", "env"]);
export type ExportFormat = Static<typeof ExportFormat>;

/** Without `format` the Accept header decides, and JSON is the default. */
export const ExportQuery = Type.Object({ format: Type.Optional(ExportFormat) });

export const EXPORT_MEDIA_TYPES: { readonly [format in ExportFormat]: string } = {
  json: "application/json",
  espruino: "text/javascript",
  moddable: "application/vnd.blindrelay.moddable+json",
  env: "text/plain",
};

/** For Moddable: include it in the manifest, and `mc/config` contains it. */
export const ModdableManifest = Type.Object({
  config: Type.Object({
    blindrelay: Type.Object({
      url: Type.String({ examples: ["wss://relay.example/wss"] }),
      agentId: AgentId,
      relayToken: AgentToken,
    }),
  }),
});

/** For Espruino: the text of a module. */
export const EspruinoModule = Type.String({
  examples: ['module.exports = {"url":"wss://relay.example/wss","agent_id":"pump-7"};\n'],
});

/** For `blindrelay agent run` and shells. */
export const EnvironmentFile = Type.String({ examples: ["BLINDRELAY_AGENT_ID=pump-7\n"] });
