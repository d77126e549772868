/** Whether an If-None-Match names an entity tag (RFC 9110 section 13.1.2). */
export const namesEtag = (header: string | undefined, etag: string): boolean =>
  (header ?? "")
    .split(",")
    .map((tag) => tag.trim().replace(/^W\//, ""))
    .some((tag) => tag === "*" || tag === etag);
