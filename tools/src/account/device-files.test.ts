import { expect, it } from "vitest";
import { deviceText } from "./device-files.ts";

const firstLine = (url: string): string | undefined =>
  deviceText("env", { url, agentId: "pump-7", relayToken: "agt_x", key: null }).split("\n")[0];

it("an address by which a relay would have a shell run a command is quoted", () => {
  expect(firstLine("wss://relay.example/;touch$IFS/x;$(id)/wss")).toBe(
    "BLINDRELAY_URL='https://relay.example/;touch$IFS/x;$(id)'",
  );
  expect(firstLine("wss://relay.example/'&id'|`id`\n/wss")).toBe(
    "BLINDRELAY_URL='https://relay.example/%27&id%27|%60id%60'",
  );
});

it("others are written as they are", () => {
  for (const base of [
    "https://relay.example",
    "http://[::1]:8080/a_b/c-d",
    "https://b%C3%BC.example/x",
  ])
    expect(firstLine(`${base}/wss`)).toBe(
      `BLINDRELAY_URL=${new URL(base).href.replace(/\/$/, "")}`,
    );
});
