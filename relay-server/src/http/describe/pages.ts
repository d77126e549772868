/**
 * `/api/docs` (Swagger UI, to try the API) and `/api/redoc` (Redoc, to read about it): our own
 * pages around the two bundles. Everything comes from this relay, and the content security policy
 * enforces that.
 */
import { readViewerFile, type Viewer } from "./viewers.ts";

interface Asset {
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

/** Redoc's bundle requests a logo from this host. */
export const REDOC_LOGO_URL = "https://cdn.redoc.ly/redoc/logo-mini.svg";
/** One transparent pixel. */
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

// validatorUrl null: otherwise the page would send this document to a server of Swagger's.
const SWAGGER_START = `const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", paint);
paint();
window.ui = SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#ui",
  deepLinking: true,
  validatorUrl: null,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
});
`;

// Redoc has one theme and writes its colours into the page, so a change of theme reloads the page.
const REDOC_START = `const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => location.reload());
const text = "#e4e6e6";
const theme = {
  colors: {
    primary: { main: "#7cb3ff" },
    success: { main: "#5fd08a" },
    error: { main: "#ff8a80" },
    text: { primary: text, secondary: "#b7bcbf" },
    border: { dark: "#4a5157", light: "#2a3035" },
    responses: {
      success: { color: "#5fd08a", backgroundColor: "#17301f", tabTextColor: "#5fd08a" },
      error: { color: "#ff8a80", backgroundColor: "#3a1d1b", tabTextColor: "#ff8a80" },
    },
  },
  schema: { nestedBackground: "#23292d", typeNameColor: "#b7bcbf", typeTitleColor: "#b7bcbf" },
  typography: { code: { backgroundColor: "#080a0b", color: "#e0b3ff" } },
  sidebar: { backgroundColor: "#14181b", textColor: text },
  rightPanel: { backgroundColor: "#0d1012" },
};
const options = { expandResponses: "200,201", nativeScrollbars: true };
if (dark.matches) options.theme = theme;
Redoc.init("openapi.json", options, document.getElementById("ui"));
`;

const REDOC_STYLE = `:root { color-scheme: light dark; }
body { margin: 0; }
@media (prefers-color-scheme: dark) {
  body { background: #1c2022; color: #e4e6e6; }
  h5 { color: #b7bcbf !important; } /* which no theme reaches */
}
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
    // Redoc writes its styles into the page, and its search runs in a worker created from a blob.
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
      "page.css": text(STYLE, REDOC_STYLE),
      "page.js": text(SCRIPT, REDOC_START),
    },
  },
];
