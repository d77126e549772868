/** A secret on its way from one of its owner's machines to another. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { House, PASSWORD } from "./processes.ts";

const PROGRAM = `
export default (agent) => {
  agent.handle("echo", (params) => params);
};
`;

interface Kept {
  readonly keyring: Record<string, { readonly agent_token: string }>;
}

describe("agent import", () => {
  const house = new House();
  const second = { BLINDRELAY_CONFIG_DIR: house.path("second") };
  const kept = (name = "default.json"): string | undefined =>
    (JSON.parse(readFileSync(house.path(`second/${name}`), "utf8")) as Kept).keyring["pump-7"]
      ?.agent_token;
  const exported = async (): Promise<string> =>
    (await house.cli(["agent", "export", "pump-7", "--format", "keyring"])).stdout;

  beforeAll(async () => {
    await house.open();
    const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
    await house.cli(login, {}, PASSWORD);
    await house.cli(login, second, PASSWORD);
    await house.cli(["agent", "add", "Pump", "--id", "pump-7"]);
    const program = house.write("pump.mjs", PROGRAM);
    await house.start(["agent", "run", program, "--agent", "pump-7", "--json"]).json();
  });
  afterAll(() => house.close());

  it("makes an agent callable on a second machine, from a pipe and from a file", async () => {
    const call = ["call", "pump-7", "echo", '{"n":1}'];
    expect((await house.cli(call, second)).code).toBe(2);
    const entry = await exported();
    expect(await house.cli(["agent", "import"], second, entry)).toEqual({
      code: 0,
      stdout: "pump-7\n",
      stderr: "",
    });
    expect((await house.cli(call, second)).stdout).toBe('{"n":1}\n');
    const again = await house.cli(
      ["agent", "import", house.write("pump-7.keyring.json", entry), "--json"],
      second,
    );
    expect(JSON.parse(again.stdout)).toEqual({ imported: ["pump-7"], replaced: [] });
  });

  it("refuses what is for another relay, or no entry, and changes nothing", async () => {
    const before = kept();
    const foreign = (await exported()).replace(house.url, "https://other.example");
    const refused = await house.cli(["agent", "import"], second, foreign);
    expect(refused.code).toBe(5);
    expect(refused.stderr).toContain("it is for https://other.example, and this profile for");
    const wrong = await house.cli(["agent", "import", house.path("pump.mjs")], second);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain("this is no entry of a keyring");
    expect(kept()).toBe(before);
  });

  it("replaces another secret only when told to, and a copy keeps the old one", async () => {
    const before = kept();
    await house.cli(["agent", "rotate", "pump-7", "--secret"]);
    const entry = await exported();
    const refused = await house.cli(["agent", "import"], second, entry);
    expect(refused.code).toBe(5);
    expect(refused.stderr).toContain("another secret for pump-7");
    expect(kept()).toBe(before);
    expect((await house.cli(["agent", "import", "--replace"], second, entry)).code).toBe(0);
    expect(entry).toContain(`"${kept()}"`);
    expect(kept("default.json.1")).toBe(before);
  });
});
