const MAX_SLUG_LENGTH = 40;

/** An `agent_id` for a name: a readable part of it, and a letter of the alphabet for each byte. */
export const agentIdOf = (name: string, bytes: Uint8Array): string => {
  const words = name.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  const slug = words.slice(0, MAX_SLUG_LENGTH).replace(/^-|-$/g, "");
  const letters = Array.from(bytes, (byte) => String.fromCharCode(97 + (byte % 26))).join("");
  return `${slug === "" ? "agent" : slug}-${letters}`;
};
