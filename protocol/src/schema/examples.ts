/** Examples of the schemas, written by the codecs, so the two cannot differ. */

export const ACCOUNT_TOKEN = "acct_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf3Bz7ex";
export const AGENT_TOKEN = "agt_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf3c6lNx";
export const SESSION_TOKEN = "sess_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1eADN2";

export const example = (text: string): object => JSON.parse(text) as object;
