/**
 * From which addresses a user has logged in within 90 days: those are exempt from the lockout of
 * the name (username-lockout.ts). Kept in the store, so that they outlive a restart and are the
 * same on every node, as an HMAC under the master key: a stolen store does not tell them.
 */
import { addressKey } from "../core/limits/address-group.ts";
import { BOUNDS } from "../store/bounds.ts";
import { holdKey } from "../store/key-rotation.ts";
import { isKnownAddress, noteAddress } from "../store/known-addresses.ts";
import type { Db } from "../store/open.ts";
import type { ControlContext } from "./context.ts";

const printOf = ({ secrets }: Pick<ControlContext, "secrets">, username: string, address: string) =>
  secrets.addressPrint(username, addressKey(address));

/** Learns from the store whether this name has logged in from there, if that is not known yet. */
export const recallAddress = async (
  context: ControlContext,
  username: string,
  address: string,
): Promise<void> => {
  const { usernameLockout, store, nowMs } = context;
  if (usernameLockout.isKnown(username, address)) return;
  const print = printOf(context, username, address);
  if (await isKnownAddress(store.db, print, nowMs() - BOUNDS.known_addresses.keptMs)) {
    usernameLockout.recall(username, address);
  }
};

/** A right login; call it inside its transaction. */
export const rememberAddress = async (
  context: ControlContext,
  tx: Db,
  user: { readonly id: string; readonly username: string },
  address: string,
): Promise<void> => {
  await holdKey(tx, context.secrets.check());
  await noteAddress(tx, user.id, printOf(context, user.username, address), context.nowMs());
};
