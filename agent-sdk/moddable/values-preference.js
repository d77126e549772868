/** The SDK's preferences, as one domain of key-value storage. */
import Preference from "preference";

const DOMAIN = "blindrelay";

export default {
  read: (key) => Preference.get(DOMAIN, key),
  write: (key, value) => Preference.set(DOMAIN, key, value),
};
