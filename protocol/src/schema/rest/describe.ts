/** What the service says about itself: documents for programs, pages for people. */
import { Type } from "typebox";

export const OpenapiDocument = Type.Object(
  { openapi: Type.String({ examples: ["3.1.1"] }), paths: Type.Object({}) },
  { description: "An OpenAPI 3.1 document." },
);

export const AsyncapiDocument = Type.Object(
  { asyncapi: Type.String({ examples: ["3.0.0"] }), channels: Type.Object({}) },
  { description: "An AsyncAPI 3.0 document." },
);

export const AssetParams = Type.Object({ asset: Type.String({ examples: ["page.js"] }) });
