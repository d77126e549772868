/** The Wi-Fi that a board joins. */

export interface Wifi {
  /** 1 to 32 bytes of UTF-8. */
  readonly ssid: string;
  /** 8 to 63 characters; "" for an open network. */
  readonly password: string;
}

const SSID_MAX_BYTES = 32;

/**
 * What is wrong with a network's name or password, without the password; null if they are valid.
 */
export const wifiProblem = ({ ssid, password }: Wifi): string | null => {
  const bytes = new TextEncoder().encode(ssid).length;
  if (bytes < 1 || bytes > SSID_MAX_BYTES) {
    return `a Wi-Fi's name has 1 to ${SSID_MAX_BYTES} bytes, this one ${bytes}`;
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
  if (/[\x00-\x1f\x7f]/.test(ssid)) return "a Wi-Fi's name has no control characters";
  if (password === "" || /^[ -~]{8,63}$/.test(password)) return null;
  return `a Wi-Fi's password has 8 to 63 ASCII characters, this one ${password.length}, or some that are not printable ASCII; give an empty one for an open network`;
};
