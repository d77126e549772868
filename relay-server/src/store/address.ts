/** Addresses of stores, as people write them. */

/** `postgres://USER:PASSWORD@HOSTS`, up to the database's name. */
const HOSTS = /^postgres(?:ql)?:\/\/(?:[^/?#]*@)?([^/?#]*)/;

/** Why nothing can be opened at this address, without a secret of it; null: it may be right. */
export const storeProblem = (store: string): string | null => {
  if (store === "sqlite") return null;
  const hosts = HOSTS.exec(store)?.[1];
  if (hosts === undefined) return "--store must be sqlite (in the data folder), or postgres://...";
  if (hosts.includes(",")) {
    return "--store names several hosts: name one that leads to the primary, such as that of PgBouncer or HAProxy";
  }
  // A socket's folder is in `?host=`, as `postgres://ada@/relay?host=/var/run/postgresql`.
  return URL.canParse(store.replace("@/", "@host/"))
    ? null
    : "--store is not a valid address: in user and password write # as %23, / as %2F, ? as %3F, : as %3A and @ as %40";
};
