/** The second bundle: code for boards and QR codes, which most visits of the page do not need. */

import { Trouble } from "./rest.ts";

type BoardCode = typeof import("./board/main.ts");

let loading: Promise<BoardCode> | null = null;

/** Rejects with a Trouble if the relay does not give it; the next call tries again. */
export const loadBoardCode = (): Promise<BoardCode> => {
  const url = new URL("console/board.js", document.baseURI).href;
  loading ??= import(url).catch(() => {
    loading = null;
    const message = "The relay does not give the page's code for boards.";
    throw new Trouble(message, "Check your network, then reload the page.", "");
  });
  return loading as Promise<BoardCode>;
};
