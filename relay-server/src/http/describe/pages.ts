/**
 * `/api/docs` (Swagger UI, to try things) and `/api/redoc` (Redoc, to read): pages of our own around
 * the two bundles. Everything comes from this relay, and the content security policy holds the
 * browser to that.
 */
import { readViewerFile, type Viewer } from "./viewers.ts";

export interface Asset {
  /** With its charset: browsers guess for scripts without one, and Redoc's bundle is not ASCII. */
  readonly type: string;
  readonly read: () => Promise<string | Buffer>;
}

export interface Page {
  readonly title: string;
  /** The folder of its assets, as its links name it. */
  readonly folder: "docs" | "redoc";
  readonly policy: string;
  readonly html: string;
  readonly assets: Readonly<Record<string, Asset>>;
}

const SCRIPT = "text/javascript; charset=utf-8";
const STYLE = "text/css; charset=utf-8";

/** Redoc's bundle asks this host for a logo. */
export const REDOC_LOGO_URL = "https://cdn.redoc.ly/redoc/logo-mini.svg";
/** One transparent pixel of our own. */
const NO_LOGO = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'/%3E";

const policyOf = (more: Readonly<Record<string, string>>): string =>
  Object.entries({
    "default-src": "'none'",
    "script-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    ...more,
  })
    .map(([directive, sources]) => `${directive} ${sources}`)
    .join("; ");

const html = (title: string, head: string, body: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
${head}
</head>
<body>
${body}
</body>
</html>
`;

const text = (type: string, content: string): Asset => ({ type, read: async () => content });
const file = (type: string, viewer: Viewer, path: string): Asset => ({
  type,
  read: () => readViewerFile(viewer, path),
});

// validatorUrl null: else the page would ask a server of Swagger's about this document.
const SWAGGER_START = `window.ui = SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#ui",
  deepLinking: true,
  validatorUrl: null,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
});
`;

const REDOC_START = `Redoc.init("openapi.json", { expandResponses: "200,201", nativeScrollbars: true }, document.getElementById("ui"));
`;

export const PAGES: readonly Page[] = [
  {
    title: "Try the API",
    folder: "docs",
    policy: policyOf({ "style-src": "'self'", "img-src": "'self' data:" }),
    html: html(
      "blindrelay: API",
      '<link rel="stylesheet" href="docs/swagger-ui.css">',
      '<div id="ui"></div>\n<script src="docs/swagger-ui-bundle.js"></script>\n<script src="docs/page.js"></script>',
    ),
    assets: {
      "swagger-ui.css": file(STYLE, "swagger-ui-dist", "swagger-ui.css"),
      "swagger-ui-bundle.js": file(SCRIPT, "swagger-ui-dist", "swagger-ui-bundle.js"),
      "page.js": text(SCRIPT, SWAGGER_START),
    },
  },
  {
    title: "Read about the API",
    folder: "redoc",
    // Redoc writes its styles into the page, and its search runs in a worker made of a blob.
    policy: policyOf({
      "style-src": "'self' 'unsafe-inline'",
      "img-src": "'self' data:",
      "worker-src": "blob:",
    }),
    html: html(
      "blindrelay: API reference",
      '<link rel="stylesheet" href="redoc/page.css">',
      '<div id="ui"></div>\n<script src="redoc/redoc.standalone.js"></script>\n<script src="redoc/page.js"></script>',
    ),
    assets: {
      "redoc.standalone.js": {
        type: SCRIPT,
        read: async () => {
          const bundle = await readViewerFile("redoc", "bundles/redoc.standalone.js");
          return bundle.toString().replaceAll(REDOC_LOGO_URL, NO_LOGO);
        },
      },
      "page.css": text(STYLE, "body { margin: 0; }\n"),
      "page.js": text(SCRIPT, REDOC_START),
    },
  },
];
