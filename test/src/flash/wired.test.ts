/** A board without a network is flashed over the line that its agent then uses; versions. */
import { describe, expect, it } from "vitest";
import { FAST, openWorkshop } from "./workshop.ts";

const { house, plugIn, provision, flash, secretsOf } = openWorkshop();

describe("a board without a network", () => {
  const PINS = ["--serial-setup", '{"rx":"D8","tx":"D6"}'];
  const SERIAL = ["--serial", "Serial1", "--serial-baud", "921600", ...PINS];

  it("is seen online over its own UART, and answers through a bridge from then on", async () => {
    const { double, port } = await plugIn({ uart: true });
    const made = await provision(port, "wired", SERIAL);
    expect([made.code, made.stderr]).toEqual([0, expect.not.stringContaining("--relay-url")]);
    expect(JSON.parse(double.storage.read("blindrelay.json") as string).serial).toEqual({
      port: "Serial1",
      baud: 921_600,
      options: { rx: "D8", tx: "D6" },
    });
    const flashed = await flash(port);
    expect(JSON.parse(flashed.stdout)).toMatchObject({ agent_id: "wired", online: true });
    expect(flashed.stderr).toContain(`blindrelay bridge ${port} --mode sealed`);
    for (const secret of await secretsOf("wired")) expect(flashed.stderr).not.toContain(secret);

    double.restart();
    const again = await flash(port);
    expect([again.code, again.stderr]).toEqual([7, expect.stringContaining("hold its button")]);

    const bridge = house.start(["bridge", port, "--mode", "sealed", "--json", ...FAST]);
    const called = await house.cli(["call", "wired", "echo", "[1]", "--wait", "--timeout", "120"]);
    expect(called.stdout).toBe("[1]\n");
    await bridge.stop();
  });

  it("reports itself that the configured UART does not exist: 7", async () => {
    const { double, port } = await plugIn();
    await provision(port, "elsewhere");
    const config = JSON.parse(double.storage.read("blindrelay.json") as string);
    const serial = { port: "Serial2", baud: 9600 };
    double.storage.write("blindrelay.json", JSON.stringify({ ...config, serial }));
    const { code, stderr } = await flash(port);
    expect([code, stderr]).toEqual([7, expect.stringContaining("this board has no Serial2")]);
  });

  it("whose UART has a different rate than its console is started without waiting for it", async () => {
    const { port } = await plugIn({ uart: true });
    await provision(port, "slow-line", ["--serial", "Serial1", "--serial-baud", "9600"]);
    const { code, stdout, stderr } = await flash(port);
    expect([code, JSON.parse(stdout).online]).toEqual([0, false]);
    expect(stderr).toContain("9600 baud");
  });

  it("must have the UART that it is provisioned for: 7", async () => {
    const { port } = await plugIn({ uart: true });
    const { code, stderr } = await provision(port, "no-uart", ["--serial", "Serial4"]);
    expect([code, stderr]).toEqual([7, expect.stringContaining("no UART Serial4")]);
  });
});

describe("the version of a program", () => {
  it("is sent by the board at every login, until another is flashed", async () => {
    const { port } = await plugIn();
    await provision(port, "versioned");
    const shown = async (): Promise<string | null> => {
      const { stdout } = await house.cli(["agent", "show", "versioned", "--json"]);
      return JSON.parse(stdout).firmware_version;
    };
    expect((await flash(port, ["--firmware-version", "1.4.0"])).code).toBe(0);
    await expect.poll(shown).toBe("1.4.0");
    expect((await house.cli(["agent", "list"])).stdout).toMatch(/versioned .* 1\.4\.0 /);
    expect((await flash(port, ["--firmware-version", "1.5.0-ä"])).code).toBe(2);
    const next = await flash(port, ["--firmware-version", "1.5.0"]);
    expect(JSON.parse(next.stdout).files[1]).toMatchObject({ name: "program", unchanged: true });
    await expect.poll(shown).toBe("1.5.0");
    expect((await flash(port)).code).toBe(0);
    await expect.poll(shown).toBeNull();
  });
});
