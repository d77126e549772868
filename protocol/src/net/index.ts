export { type HttpAnswer, type HttpPort, type HttpRequest, readText } from "./http.ts";
export { loginOf } from "./login.ts";
export {
  REASONS,
  type Reason,
  type ReasonName,
  reasonOfAnswer,
  reasonOfError,
} from "./reasons.ts";
