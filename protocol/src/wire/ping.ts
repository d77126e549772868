/**
 * `ping` and `pong` (section 3): they have only a type. Either side may ping; only a `pong`
 * answers.
 *
 * [portable]
 */
import { FIELD_TYPE, TYPE_PING, TYPE_PONG } from "./names.ts";

export const PING_TEXT = `{"${FIELD_TYPE}":"${TYPE_PING}"}`;
export const PONG_TEXT = `{"${FIELD_TYPE}":"${TYPE_PONG}"}`;
