export {
  type Answer,
  type AnswerName,
  type Method,
  type PageName,
  type Query,
  REST_LIMITS,
  RestError,
  type RestLimits,
  type RestOptions,
  withQuery,
} from "./rest.ts";
