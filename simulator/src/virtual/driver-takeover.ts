/** One agent connects twice: the newer link stays and gets what is sent, the older one ends. */
import type { RawWorld } from "./driver-raw.ts";

export const takeover = async (raw: RawWorld): Promise<void> => {
  const older = await raw.agent();
  const peer = (await raw.client())?.peer;
  if (older === null || peer === undefined || !raw.isQuiet) return;
  await raw.sleep(raw.below(2_000));
  const newer = await raw.agent();
  if (newer === null || !raw.isQuiet) return;
  await older.until(() => older.isOver);
  if (!raw.isQuiet) return;
  const isReplaced = older.heard.some(({ code }) => code === "REPLACED");
  if (!older.isOver || !isReplaced) raw.untold("the older of two links was not told of the newer");
  if (newer.isOver) raw.untold(`the newer of two links ended: ${newer.ending}`);
  const sid = raw.name(12);
  peer.send(raw.envelope(`${sid}.x`, 1));
  const arrived = await newer.next(() => true);
  if (arrived === null && raw.isQuiet && !newer.isOver && !peer.isOver) {
    raw.untold("the newer of two links gets nothing");
  }
};
