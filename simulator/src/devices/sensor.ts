/**
 * A thermometer. `sensor.read` answers `{celsius, reading}`: readings count from 1, and the
 * temperature is a pure function of the agent's name and the reading's number, so the caller can
 * tell a right answer from an invented or misrouted one.
 */
import type { Agent } from "@blindrelay/agent-sdk";

const COLDEST = -20;
const HUNDREDTHS = 6000; // -20.00 to 39.99 degrees

/**
 * What the sensor called `name` measures at its `reading`th reading, in degrees Celsius with two
 * decimals.
 */
export const celsiusAt = (name: string, reading: number): number => {
  // 31 * (2^31 - 1) stays far below 2^53: exact on every runtime, without 32-bit multiplication.
  let hash = reading;
  for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) % 2147483647;
  return COLDEST + (hash % HUNDREDTHS) / 100;
};

export default (agent: Agent): void => {
  let readings = 0;
  agent.handle("sensor.read", () => {
    readings += 1;
    return { celsius: celsiusAt(agent.name, readings), reading: readings };
  });
};
