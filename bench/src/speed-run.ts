/** A whole run and its results: the table, the JSON document and the page. */
import { machine } from "@blindrelay/simulator/testing";
import { type Facts, renderPage } from "./page.ts";
import { type Report, renderText, type Section } from "./report.ts";
import { SECTION_IDS } from "./sections.ts";
import { measureSpeed, type Plan } from "./speed.ts";

/**
 * Not ok if a section is void, unless that was expected. `args`: as typed, for the page. Rejects
 * when `signal` aborts.
 */
export async function benchSpeed(
  plan: Plan,
  args: readonly string[],
  signal: AbortSignal,
): Promise<Report> {
  const startedAt = new Date();
  const { sections: measured, skipped, versions } = await measureSpeed(plan, signal);
  const place = ({ id }: Section): number => SECTION_IDS.indexOf(id);
  const sections = (plan.quick ? measured.map(tooShort) : measured).toSorted(
    (a, b) => place(a) - place(b),
  );
  const ok = plan.quick || sections.every(({ voids }) => voids.length === 0);
  const facts = { startedAt, machine: machine(), versions };
  const command = ["npm run bench --", ...args].join(" ");
  return {
    ok,
    text: `${ground(facts)}\n\n${renderText(sections, skipped)}`,
    json: { ok, ...facts, quick: plan.quick, cycles: plan.cycles, skipped, sections },
    html: renderPage(sections, { ...facts, command }),
  };
}

/** When, where and with what versions: part of the table, so that it can be stored as it is. */
function ground({ startedAt, machine, versions }: Omit<Facts, "command">): string {
  const day = startedAt.toISOString().slice(0, 10);
  const used = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const processor = `${machine.cpus} x ${machine.cpu_model}`;
  return [day, processor, machine.platform, ...used].join(", ");
}

function tooShort(section: Section): Section {
  return { ...section, voids: ["a quick run is too short for figures", ...section.voids] };
}
