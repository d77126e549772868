/** One operation of the relay's REST API, as its OpenAPI document describes it. */
export interface Operation {
  /** `operationId`. */
  readonly id: string;
  readonly method: "get" | "post" | "put" | "patch" | "delete";
  /** `/api/v1/agents/:agent_id` */
  readonly path: string;
  /** Kinds of credentials, of which one is required; empty: none is. */
  readonly credentials: readonly string[];
  /** JSON Schema of the query, with numbers and booleans where it expects them. */
  readonly query: {
    readonly type: "object";
    readonly required: readonly string[];
    readonly properties: Readonly<Record<string, object>>;
  };
  readonly body: { readonly required: boolean; readonly schema: object } | null;
  readonly status: number;
  /** An example; null if the answer has no body. */
  readonly answer: unknown;
}
