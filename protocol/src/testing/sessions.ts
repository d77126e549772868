/**
 * Replays the traces of sessions.json: which texts arrive where and when, and every byte that is
 * sent.
 *
 * [portable]
 */
import type { Suite } from "../crypto/suite.ts";
import type { Version } from "../crypto/versions.ts";
import { asciiBytes, asciiText } from "../encoding/bytes.ts";
import type { AgentVerdict } from "../session/agent.ts";
import { AgentSessions, DEFAULT_AGENT_LIMITS } from "../session/agent.ts";
import type { ClientEffect } from "../session/client.ts";
import { ClientSession, DEFAULT_CLIENT_TIMINGS } from "../session/client.ts";
import { CLOSE_NOTICE } from "../session/closing.ts";
import type { AgentStep, AgentTrace, ClientStep, ClientTrace, SessionsFile } from "./files.ts";
import { expectSame, hex } from "./report.ts";

const describeVerdict = (verdict: AgentVerdict): string => {
  if (verdict.kind === "answer") return `answer ${verdict.text}`;
  if (verdict.kind === "refused") return `refused ${verdict.reason}`;
  if (verdict.kind === "waits") return "waits";
  const farewell = verdict.farewell === null ? "" : `farewell ${verdict.farewell.text};`;
  const fresh = verdict.fresh ? "fresh" : "held";
  return `${farewell}message ${verdict.sid} gap ${verdict.gap} ${fresh} ${asciiText(verdict.plaintext)}`;
};

const expectedVerdict = (step: AgentStep): string => {
  const farewell = step.farewell === undefined ? "" : `farewell ${step.farewell};`;
  if (step.answer !== undefined) return `answer ${step.answer}`;
  const message = step.message;
  if (message === undefined) return `refused ${step.refused}`;
  const fresh = message.fresh ? "fresh" : "held";
  return `${farewell}message ${message.sid} gap ${message.gap} ${fresh} ${message.plaintext}`;
};

const startAgent = (suite: Suite, trace: AgentTrace, step: AgentStep): AgentSessions => {
  const start = step.start;
  if (start === undefined) throw new Error("a trace begins with a start");
  return new AgentSessions({
    suite: suite,
    agentId: trace.agent_id,
    agentToken: trace.agent_token,
    version: trace.v as Version,
    bootCount: start.boot_count,
    deviceRandom: hex(start.device_random),
    serialNumber: start.serial_number,
    limits: {
      maxSessions: start.max_sessions,
      unheldPerSecond: DEFAULT_AGENT_LIMITS.unheldPerSecond,
      unheldBurst: DEFAULT_AGENT_LIMITS.unheldBurst,
      epochSessions: start.epoch_sessions,
    },
  });
};

const checkAgentTrace = (suite: Suite, trace: AgentTrace, failures: string[]): void => {
  let agent = startAgent(suite, trace, trace.steps[0] as AgentStep);
  for (const step of trace.steps) {
    const where = `sessions: agent ${trace.v}: ${trace.comment}: ${step.comment}`;
    if (step.start !== undefined) agent = startAgent(suite, trace, step);
    agent.expire(step.ms);
    if (step.receive !== undefined) {
      const verdict = agent.receive(step.receive, step.ms);
      expectSame(failures, where, describeVerdict(verdict), expectedVerdict(step));
      if (verdict.kind === "message" && asciiText(verdict.plaintext) === CLOSE_NOTICE) {
        agent.close(verdict.sid);
      }
    }
    if (step.seal !== undefined) {
      const text = agent.seal(step.seal.sid, asciiBytes(step.seal.plaintext));
      expectSame(failures, where, text, step.sealed);
    }
    if (step.held !== undefined) {
      expectSame(failures, `${where}: held`, agent.held().sort().join(" "), step.held.join(" "));
    }
  }
};

const describeEffects = (effects: readonly ClientEffect[]): string => {
  let text = "";
  for (const effect of effects) {
    if (effect.kind === "send") text += `send ${effect.text};`;
    if (effect.kind === "opened") text += `opened ${effect.sid};`;
    if (effect.kind === "message") {
      text += `message gap ${effect.gap} ${asciiText(effect.plaintext)};`;
    }
    if (effect.kind === "abandoned") text += `abandoned ${effect.reason};`;
    if (effect.kind === "refused") text += `refused ${effect.reason};`;
  }
  return text;
};

const expectedEffects = (step: ClientStep): string => {
  let text = "";
  for (const packet of step.sends ?? []) text += `send ${packet};`;
  if (step.opened !== undefined) text += `opened ${step.opened};`;
  const message = step.message;
  if (message !== undefined) text += `message gap ${message.gap} ${message.plaintext};`;
  if (step.abandoned !== undefined) text += `abandoned ${step.abandoned};`;
  if (step.refused !== undefined) text += `refused ${step.refused};`;
  return text;
};

const checkClientTrace = (suite: Suite, trace: ClientTrace, failures: string[]): void => {
  let drawn = 0;
  const client = new ClientSession({
    suite: suite,
    // Only a C has 16 bytes; the delay before a new opening is chosen as zero.
    random: (length) => {
      if (length !== 16) return new Uint8Array(length);
      drawn++;
      return hex(trace.random[drawn - 1] as string);
    },
    agentId: trace.agent_id,
    agentToken: trace.agent_token,
    version: trace.v as Version,
    timings: DEFAULT_CLIENT_TIMINGS,
  });
  for (const step of trace.steps) {
    const where = `sessions: client ${trace.v}: ${trace.comment}: ${step.comment}`;
    let effects: ClientEffect[] = [];
    if (step.command === "open") effects = client.open(step.ms);
    if (step.command === "timeout") effects = client.timeout(step.ms);
    if (step.command === "give_up") client.giveUp();
    if (step.receive !== undefined) effects = client.receive(step.receive, step.ms);
    expectSame(failures, where, describeEffects(effects), expectedEffects(step));
    if (step.seal !== undefined) {
      expectSame(failures, where, client.seal(asciiBytes(step.seal)), step.sealed);
    }
    expectSame(failures, `${where}: state`, client.state, step.state);
  }
};

export const checkSessions = (
  suite: Suite,
  file: SessionsFile,
  has: (v: string) => boolean,
  failures: string[],
): void => {
  for (const trace of file.agent) if (has(trace.v)) checkAgentTrace(suite, trace, failures);
  for (const trace of file.client) if (has(trace.v)) checkClientTrace(suite, trace, failures);
};
