/**
 * What users of neighbouring projects reported, and whether it can happen here. Each report stands
 * for a kind. It is held by a test that names it in a comment, as `owner/name#number`, beside the
 * code or in this folder; or there is a reason why there is none. `reports.test.ts` compares both:
 * add a report here, and its name to the test. A test may name more of the same kind.
 */

export interface Report {
  /** `owner/name#number`, on GitHub. */
  readonly report: string;
  readonly what: string;
  /** Why no test of ours names it; absent: one does. */
  readonly reason?: string;
}

export const REPORTS: readonly Report[] = [
  // Files, and those who own them.
  { report: "getpaseo/paseo#4695", what: "a mark of an editor broke every JSON file" },
  { report: "stacklok/toolhive#3979", what: "a mounted file cannot be replaced" },
  { report: "felddy/foundryvtt-docker#39", what: "a user without HOME and passwd entry" },
  { report: "MoonshotAI/kimi-code#3535", what: "a file system without hard links" },
  { report: "kubernetes/website#37388", what: "mode bits of mounted secrets: taken for a leak" },
  { report: "transmission/transmission#2367", what: "a full disk made a file with a hole" },
  { report: "kevinmcaleer/Snakie#825", what: "a full disk made a file with a hole" },
  { report: "linuxmint/xed#87", what: "one run as root took a user's settings away" },
  { report: "sonichi/sutando#2228", what: "a folder with a space was looked for as %20" },

  // Variables, texts and numbers.
  { report: "ScreamingFace/screamingface#538", what: "variables of a Service stopped its pods" },
  { report: "elastic/cloud-on-k8s#1987", what: "variables of a Service stopped its pods" },
  { report: "docker/compose#3768", what: "an empty variable was taken for a value" },
  { report: "docker/compose#5829", what: "an empty variable was taken for a value" },
  { report: "cli/cli#9731", what: "a line end after a token" },
  { report: "balena-io/balena-cli#1800", what: "a line end after a token" },
  { report: "ulsklyc/yuvomi#608", what: "an umlaut typed on a Mac was another password" },
  { report: "Houdini/two_factor_authentication#155", what: "a code with the space that apps show" },
  { report: "erwindon/SaltGUI#963", what: "long integers were rounded silently" },
  { report: "jqlang/jq#1652", what: "long integers were rounded silently" },
  { report: "esphome/issues#1436", what: "NaN in JSON" },
  { report: "prusa3d/PrusaSlicer#382", what: "a machine read an exponent as an axis" },
  { report: "ClassicUO/ClassicUO#1088", what: "a letter became a line end" },
  {
    report: "nodejs/node#60415",
    what: "lines typed ahead were dropped, and a password was shown",
  },
  {
    report: "microsoft/vscode-serial-monitor#90",
    what: "letters and escape sequences that a read cut in two",
  },

  // Runtimes and packages.
  { report: "oven-sh/bun#8072", what: "an engine without ChaCha20-Poly1305" },
  { report: "chrischall/ofw-mcp#15", what: "ws in a bundle of ES modules" },
  { report: "eclipse-paho/paho.mqtt.python#365", what: "exceptions of callbacks vanished" },
  { report: "paperclipai/paperclip#13558", what: "nobody drained the output" },
  {
    report: "PromptPartner/bexio-mcp-server#18",
    what: "the log's reader was gone: a busy core",
  },

  // Networks.
  { report: "fastify/fastify#450", what: "an empty body of another type" },
  { report: "dam-agents/dam#2763", what: "WebSockets ignored the proxy" },
  { report: "rustdesk/rustdesk#11688", what: "why there is no link was hidden" },
  {
    report: "superset-sh/superset#5130",
    what: "a half-open socket after a laptop's sleep",
    reason: "held when it was tried; both SDKs' link tests have a relay that falls silent",
  },
  {
    report: "nodejs/node#54359",
    what: "a quarter of a second for each address but the last",
    reason: "set in protocol/src/net/node.ts; a slow line needs a network namespace to be tried",
  },
  { report: "tier4/ota-client#215", what: "a bad line, and a few tries in all" },
  { report: "thingsboard/thingsboard-client-sdk#132", what: "a bad line, and a few tries in all" },
  { report: "getgrav/grav-plugin-login#204", what: "each address of an IPv6 /64 had its tries" },
  { report: "zulip/zulip#21544", what: "each address of an IPv6 /64 had its tries" },

  // Releases.
  { report: "eclipse-hawkbit/hawkbit#446", what: "a device fell back, and nobody saw it" },
  { report: "electrode-io/electrode-ota-server#57", what: "versions that are not SemVer" },

  // Serial ports.
  { report: "neundorf/CuteCom#33", what: "lines that end with CR alone" },
  { report: "nanoframework/Home#1018", what: "opening the port reset the board" },
  { report: "OffbandMesh/meshcore-firmware#1014", what: "two adapters of one serial number" },
  { report: "eclipse-mosquitto/mosquitto#2230", what: "keep-alives rest while data is under way" },
  {
    report: "jeelabs/folie#31",
    what: "a link to a port that leads elsewhere after replugging",
    reason: "held when it was tried: each opening follows the path anew, and nothing is cached",
  },

  // Databases and the bus.
  { report: "senigami/audiobook-studio#246", what: "a backup without the write-ahead log" },
  { report: "vavallee/bindery#900", what: "a backup without the write-ahead log" },
  { report: "goauthentik/authentik#19939", what: "a pooler refused parameters of a connection" },
  { report: "pgbouncer/pgbouncer#875", what: "a pooler refused parameters of a connection" },
  { report: "nats-io/nats.rs#801", what: "a cluster's servers, with commas" },
  { report: "nats-io/nats.java#209", what: "a cluster's servers, with commas" },
  {
    report: "brianc/node-postgres#2375",
    what: "sslmode=require demands a chain of certificates",
  },
];
