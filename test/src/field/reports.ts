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
  { report: "ad-si/Transity#32", what: "a rename out of /tmp, which lay on another disk" },
  { report: "python-otr/gajim-otr#31", what: "a private key was as private as the umask" },

  { report: "openclaw/openclaw#73676", what: "the current folder was removed: a stack trace" },
  { report: "nodejs/node#57045", what: "the current folder was removed: a stack trace" },
  { report: "openshift/oc#474", what: "a home folder that cannot be written" },

  // Variables, texts and numbers.
  { report: "ScreamingFace/screamingface#538", what: "variables of a Service stopped its pods" },
  { report: "elastic/cloud-on-k8s#1987", what: "variables of a Service stopped its pods" },
  { report: "docker/compose#3768", what: "an empty variable was taken for a value" },
  { report: "docker/compose#5829", what: "an empty variable was taken for a value" },
  { report: "docker/docs#123", what: "quotation marks in a file of variables were kept" },
  { report: "wardenenv/warden#380", what: "a file of variables with CR LF" },
  { report: "cli/cli#9731", what: "a line end after a token" },
  { report: "balena-io/balena-cli#1800", what: "a line end after a token" },
  { report: "ulsklyc/yuvomi#608", what: "an umlaut typed on a Mac was another password" },
  { report: "Houdini/two_factor_authentication#155", what: "a code with the space that apps show" },
  { report: "erwindon/SaltGUI#963", what: "long integers were rounded silently" },
  { report: "jqlang/jq#1652", what: "long integers were rounded silently" },
  { report: "esphome/issues#1436", what: "NaN in JSON" },
  { report: "prusa3d/PrusaSlicer#382", what: "a machine read an exponent as an axis" },
  { report: "ClassicUO/ClassicUO#1088", what: "a letter became a line end" },
  { report: "nodejs/node#60415", what: "lines typed ahead were dropped, and a password was shown" },
  { report: "spinje/pflow#589", what: "input without an end filled the memory" },
  { report: "ifreund/waylock#62", what: "an empty password counted as a wrong one" },
  { report: "NodeBB/NodeBB#6894", what: "a space after a user name" },
  { report: "rosedu/vmchecker#44", what: "a space after a user name" },
  {
    report: "jazzband/django-two-factor-auth#768",
    what: "apps refused an otpauth address with a second colon",
    reason:
      "user names have no colon, and the issuer is a constant: relay-server/src/control/totp.ts",
  },
  { report: "coder/coder#1663", what: "a slash after the server's address" },
  { report: "lathe-cli/lathe#174", what: "columns drifted behind East Asian letters" },
  {
    report: "microsoft/vscode-serial-monitor#90",
    what: "letters and escape sequences that a read cut in two",
  },

  // Runtimes and packages.
  { report: "oven-sh/bun#8072", what: "an engine without ChaCha20-Poly1305" },
  { report: "chrischall/ofw-mcp#15", what: "ws in a bundle of ES modules" },
  { report: "eclipse-paho/paho.mqtt.python#365", what: "exceptions of callbacks vanished" },
  { report: "paperclipai/paperclip#13558", what: "nobody drained the output" },
  { report: "PromptPartner/bexio-mcp-server#18", what: "the log's reader was gone: a busy core" },
  { report: "perseo22/pacmanager#12", what: "nohup did not keep Node from a hang-up" },
  { report: "mrmn2/PdfDing#165", what: "the first process of a container ignored SIGTERM" },
  {
    report: "hashicorp/nomad#17022",
    what: "a log filled while the server was away",
    reason:
      "runUntilStopped in tools/src/commands/agent-run.ts says each reason once; a countdown in it is none",
  },
  {
    report: "keycloak/keycloak-js#107",
    what: "a timer of more than 31 bits ended at once",
    reason:
      "a call's timeout is bounded, and the timer of agent-sdk/src/node/timer.ts waits in parts",
  },

  // Networks.
  { report: "gotify/server#687", what: "monitors ask HEAD, and got 404" },
  { report: "kubestellar/console#7374", what: "proxies write bearer with a small letter" },
  { report: "ory/hydra#2502", what: "each path of a scanner became a series of metrics" },
  { report: "stjet/Faucet-v2#23", what: "a claimed address freed from the limits of one" },
  { report: "nodejs/node#40702", what: "localhost had two addresses, and one was tried" },
  { report: "websockets/ws#2283", what: "proxies end what is idle for 60 s" },
  { report: "elizaOS/eliza#22162", what: "Retry-After as a date meant at once" },
  { report: "middleapi/orpc#1961", what: "__proto__ as a name of parameters" },
  { report: "fastenhealth/fasten-onprem#41", what: "browsers have no crypto.subtle without https" },
  { report: "fastify/fastify#450", what: "an empty body of another type" },
  { report: "dam-agents/dam#2763", what: "WebSockets ignored the proxy" },
  { report: "rustdesk/rustdesk#11688", what: "why there is no link was hidden" },
  {
    report: "superset-sh/superset#5130",
    what: "a half-open socket after a laptop's sleep",
    reason: "held when it was tried; both SDKs' link tests have a relay that falls silent",
  },
  { report: "nodejs/node#54359", what: "a quarter of a second for each address but the last" },
  { report: "tier4/ota-client#215", what: "a bad line, and a few tries in all" },
  { report: "trevornk/ramblr#68", what: "a part as long as the file was asked for more, for ever" },
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
  { report: "brianc/node-postgres#2375", what: "sslmode=require demands a chain of certificates" },
  { report: "joyent/libuv#690", what: "sockets were closed for want of descriptors, silently" },
  { report: "krylosov-aa/pg-status#32", what: "a pool without connections logged nothing" },
  { report: "WiseLibs/better-sqlite3#1237", what: "a store deleted under it, and all went well" },
  { report: "NousResearch/hermes-agent#97329", what: "a replaced store, and two logs of it" },
  {
    report: "spring-cloud/spring-cloud-vault#152",
    what: "a role that expired: faults, not an outage",
  },
  { report: "IQSS/dataverse#9717", what: "PostgreSQL 15 lets nobody create in public" },
  { report: "hasura/graphql-engine#7315", what: "a letter that the database's encoding lacks" },
  { report: "IQSS/dataverse#8278", what: "a database in SQL_ASCII converts and counts no letters" },
  { report: "flynn/flynn#2235", what: "plans of statements outlived a migration" },
  {
    report: "TriliumNext/Trilium#1835",
    what: "a restored file met the write-ahead log of the one before",
    reason:
      "SQLite cannot tell whose log it is; docs/operations.md says to remove it, and a damaged store does not start",
  },
];
