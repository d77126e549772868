import type { IncomingHttpHeaders } from "node:http";

/** A client lists all that it would speak, and the server chooses (RFC 9110, section 7.8). */
const WEBSOCKET = /(^|,)[\t ]*websocket[\t ]*(,|$)/i;

/** Whether `Upgrade` offers what this relay speaks on `/wss`. */
export const offersWebSocket = ({ upgrade = "" }: IncomingHttpHeaders): boolean =>
  WEBSOCKET.test(upgrade);
