/**
 * Where a firmware engineer stumbled on the first day with blindrelay. Each is held by a test, or
 * there is a reason why there is none; `reports.test.ts` looks for the tests.
 */

export interface Stumble {
  readonly what: string;
  /** Files of tests, each with part of a test's name. */
  readonly tests?: readonly (readonly [file: string, title: string])[];
  /** Why there is no test. */
  readonly reason?: string;
}

const CONSOLE = "test/src/console/console.test.ts";
const HOMES = "test/src/cli/hostile-home.test.ts";
const PROFILE = "tools/src/config/profile.test.ts";
const PUBLISH = "test/src/publish/publish.test.ts";
const SMALL = "tools/src/commands/small.test.ts";
const TOLD = "test/src/cli/told-well.test.ts";

const held = (what: string, ...tests: readonly (readonly [string, string])[]): Stumble => ({
  what,
  tests,
});
const open = (what: string, reason: string): Stumble => ({ what, reason });

export const FIRST_DAY: readonly Stumble[] = [
  // Secrets.
  held(
    "a broken profile file: the advice destroyed every secret",
    [HOMES, "one whose profile an editor cut off"],
    [PROFILE, "reads what an editor saved with a byte order mark"],
    [PROFILE, "goes back to the last good copy"],
  ),
  held(
    "a profile's account token went to whatever BLINDRELAY_URL named",
    [PROFILE, "an explicit profile takes precedence over the environment"],
    [PROFILE, "a profile's token goes to that profile's relay only"],
  ),
  held("a list without an end was read for ever", [
    "tools/src/hostile-relay.test.ts",
    "ends well, whatever answers",
  ]),
  held("the account token could not be had, replaced or forgotten", [
    "tools/src/hostile-relay.test.ts",
    "knows every command",
  ]),

  // Programs.
  held("a program that touches hardware ran neither in the simulator nor on Node", [
    "simulator/src/virtual/stubs.test.ts",
    "a board's program runs, each device with pins of its own",
  ]),
  held("a line over serialport stalled on Node 26", [
    "tools/src/serial/serial.test.ts",
    "whose line is a serialport at once",
  ]),
  held("check was green for modules that boards do not have", [
    "agent-sdk/build/device-program.test.ts",
    "lists the modules that a program requires by a literal name",
  ]),
  held("check reported an import twice", [
    "agent-sdk/build/device-program.test.ts",
    "refuses an import once",
  ]),
  held("a folder in a program's place printed a stack", [TOLD, "a folder in a program's place"]),
  held("a TypeScript scenario failed in a folder that npm made CommonJS", [
    "simulator/src/cli.test.ts",
    "a TypeScript scenario in a folder that npm made CommonJS",
  ]),
  held(
    "a bare call in fleetTest ended without a word, a mistyped member too, an error had no line",
    ["simulator/src/vitest/fleet-test.test.ts", "says how to wait for a call"],
    ["simulator/src/vitest/fleet-test.test.ts", "is refused with the member that was meant"],
    ["simulator/src/vitest/fleet-test.test.ts", "has the test's own line"],
  ),
  open("no agent run --watch", "`flash --watch` has it; on Node, push to `agent run --allow-push`"),
  open(
    "a second state folder of one agent is only warned about",
    "docs/commands.md promises that an empty folder is provisioned; no machine knows the others",
  ),

  // Relays that are away, and those that refuse.
  held("agent run and call --wait did not wait for the relay, nor push --wait", [
    TOLD,
    "wait for a relay that is away",
  ]),
  held("a missing program was found after the relay was asked, a missing relay after the secret", [
    TOLD,
    "who has not logged in is asked for the relay",
  ]),
  held("a wrong token of a fleet locked the whole address out", [
    "simulator/src/live/run.test.ts",
    "runs against an external relay",
  ]),
  held("nobody said what is locked, for how long, and how many attempts are left", [
    "relay-server/src/ops/operators.test.ts",
    "a locked address is told what is locked",
  ]),
  held("the wait was printed twice", ["client-sdk/src/rest/rest.test.ts", "says once how long"]),
  held("a busy relay ended the command", [
    "tools/src/base/rest.test.ts",
    "a busy relay that names a short wait is asked again",
  ]),
  held("the fix for a certificate that is not yet valid was wrong", [
    "test/src/cli/unreachable.test.ts",
    "with its fix",
  ]),
  held("Caddy's line was a syntax error", [
    "relay-server/src/ops/proxy.test.ts",
    "passes REST and WebSockets",
  ]),

  // Packages and places.
  held(
    "getting packages was the slowest step",
    [PUBLISH, "names the line that installs what was packed"],
    [PUBLISH, "would publish every package"],
  ),
  held("the main entry had no connect", [
    "client-sdk/src/node/entry.test.ts",
    "has the connect of the runtime that loads it",
  ]),
  held("Windows: scripts with exec", ["scripts/npm-scripts.test.ts", "npm run cli, relay and sim"]),
  held("a full disk was a bug in blindrelay", [
    "relay-server/src/ops/hostile-disk.test.ts",
    "init says so",
  ]),
  held("the bridge could read the relay's key", [
    "relay-server/src/ops/deploy.test.ts",
    "have users and folders of their own",
  ]),

  // The console.
  held("agents could not be found, counted or sorted", [CONSOLE, "finds agents by any part"]),
  held("one keyring opened one agent", [CONSOLE, "opens every agent of one keyring"]),
  held("no rename, rotate or delete", [CONSOLE, "renames an agent, rotates its relay token"]),
  held("the audit log showed users as identifiers", [CONSOLE, "the audit log to admins only"]),

  // Fleets.
  held("fleets cannot be selected", [
    "test/src/fleet/killed.test.ts",
    "that is killed and resumed runs on each exactly once",
  ]),
  held("no log of a device", ["test/src/cli/logs.test.ts", "is followed over a crash"]),
  held("events had no time", ["test/src/cli/cli.test.ts", "prints one JSON document per line"]),

  // The second factor.
  held("an interrupted enrolment said nothing", [
    "test/src/cli/enrol.test.ts",
    "that is interrupted says how far it came",
  ]),
  held("init and user add never asked, and there was no QR code", [
    "test/src/cli/enrol.test.ts",
    "asks for the passwords of the first admin and of others, and shows a QR code",
  ]),

  // What is told.
  held("a mistyped agent, a missing argument, logout", [TOLD, "a mistyped agent is asked about"]),
  held("an address without a scheme, or of the console", [
    TOLD,
    "a relay's address may lack its scheme",
  ]),
  held("the relay's own words of a wrong value", [TOLD, "the relay's complaint about a value"]),
  held("help in mid-word", ["protocol/src/command-line.test.ts", "help"]),
  held("tables overflowed", [SMALL, "a table is cut for a terminal that is too narrow"]),
  held("events told of each agent at Ctrl-C", [TOLD, "events ends at Ctrl-C"]),
  held("the shell printed no JSON, and sent help to the device", [TOLD, "a person at a terminal"]),
  held("an empty list was only a header", [TOLD, "an account without agents is told"]),
  held("failures under --json were plain text", [TOLD, "a failure under --json is one JSON"]),
  held("a failing push printed nothing under --json", [TOLD, "a push that fails prints one JSON"]),
  held("members that the profile does not know were dropped", [
    PROFILE,
    "keeps members that it does not know",
  ]),
  held("completion of one program only, and agents in every place", [
    SMALL,
    "works in a real bash, for all three programs",
  ]),
  held("units ran into the figures of a report", [
    "simulator/src/report/report.test.ts",
    "aligns its columns",
  ]),
];
