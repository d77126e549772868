/**
 * Runs every command in the home that the environment describes, against an honest relay, and
 * prints what came of it, one JSON line each: `in-home.ts [fresh|PROFILE]`. Before each command the
 * folder of the profiles is removed, or this file is put in order.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HttpResponse, http } from "msw";
import { setupServer } from "msw/node";
import { writeProfile } from "../config/profile.ts";
import { everyCommand, PROFILE, prepare, run, tidy } from "./every-command.ts";

const folder = mkdtempSync(join(tmpdir(), "blindrelay-home-"));
const [, , profile] = process.argv;
const GONE = { recursive: true, force: true };
const server = setupServer();
server.listen({ onUnhandledFrame: "bypass" });
prepare(folder);
try {
  for (const [name, cases] of Object.entries(everyCommand(folder))) {
    for (const each of cases) {
      const { honest, ends = 0 } = each;
      server.use(
        http.all(`${PROFILE.url}/api/v1/*`, ({ request }) => {
          const { pathname } = new URL(request.url);
          const end = Object.keys(honest).find((one) => pathname.endsWith(one)) ?? "";
          const isDeletion = request.method === "DELETE";
          return isDeletion
            ? new HttpResponse(null, { status: 204 })
            : HttpResponse.json(honest[end]);
        }),
      );
      if (profile === "fresh") rmSync(process.env.BLINDRELAY_CONFIG_DIR as string, GONE);
      else if (profile !== undefined) writeProfile(profile, PROFILE);
      const { code, said } = await run(each, process.env);
      console.log(JSON.stringify({ name, ends, code, said }));
      server.resetHandlers();
      tidy(folder);
    }
  }
} finally {
  rmSync(folder, GONE);
}
process.exit();
