/** ECMA-419 key-value storage, for platforms whose SDK has no preferences. */
import storage from "embedded:storage/key-value";

export default storage.open({ path: "blindrelay" });
