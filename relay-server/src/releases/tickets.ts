/**
 * Authorises a device to fetch the artifact that it was just offered: its tokens only allow it to
 * ask (section 1), and many boards cannot set a header on a download. A ticket is valid for one
 * release and an hour.
 */
import { timingSafeEqual } from "node:crypto";
import type { Secrets } from "../control/secrets.ts";

const TICKET_TTL_S = 3600;

/** `<expiry, Unix seconds>-<64 hex digits>` */
export const makeTicket = (secrets: Secrets, releaseId: string, nowMs: number): string => {
  const expiry = Math.floor(nowMs / 1000) + TICKET_TTL_S;
  return `${expiry}-${secrets.ticketMac(releaseId, expiry)}`;
};

export const isTicket = (
  secrets: Secrets,
  releaseId: string,
  ticket: string,
  nowMs: number,
): boolean => {
  const match = /^(\d{1,12})-([0-9a-f]{64})$/.exec(ticket);
  if (match === null) return false;
  const expiry = Number(match[1]);
  const mac = Buffer.from(match[2] as string);
  return (
    timingSafeEqual(mac, Buffer.from(secrets.ticketMac(releaseId, expiry))) && expiry * 1000 > nowMs
  );
};
