// The OpenAPI document as a page to read: plain HTML, no script, nothing from elsewhere.

import { createHash } from "node:crypto";
import { customerApiPrefix } from "../../../wire/customer/shape.ts";
import { escapeHtml } from "../../../core/html-text.ts";
import { fieldTable, operationArticle, prose } from "./openapi-page-parts.ts";
import { jsonObjectOf, type JsonObject } from "./openapi-schema.ts";

export const openApiPagePath = `${customerApiPrefix}/docs/`;

const style = `
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent); --soft: color-mix(in srgb, currentColor 6%, transparent); }
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; font: 16px/1.55 system-ui, sans-serif; display: grid; grid-template-columns: 19rem minmax(0, 1fr); }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.5rem 1rem; border-right: 1px solid var(--line); font-size: .85rem; }
nav h2 { font-size: .8rem; margin: 1.2rem 0 .2rem; }
nav a { display: block; padding: .1rem 0; text-decoration: none; overflow-wrap: anywhere; }
nav a:hover { text-decoration: underline; }
main { padding: 1.5rem 2.5rem 6rem; max-width: 62rem; }
h1 { line-height: 1.2; margin-top: 0; }
section > h2 { border-bottom: 2px solid var(--line); padding-bottom: .2rem; margin-top: 3rem; }
article { margin: 2rem 0; padding: 1rem 1.25rem; border: 1px solid var(--line); border-radius: .5rem; }
article h3 { margin: 0; font-size: 1.05rem; overflow-wrap: anywhere; }
h4 { margin: 1.2rem 0 .3rem; }
p { margin: .5rem 0; }
small { opacity: .75; font-weight: normal; }
code, pre { font: .875em/1.45 ui-monospace, monospace; }
pre { background: var(--soft); padding: .75rem 1rem; border-radius: .4rem; overflow-x: auto; max-height: 24rem; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
th { border-top: 0; }
span { display: inline-block; min-width: 4.2rem; text-align: center; padding: 0 .4rem; border-radius: .3rem; font: 600 .8rem/1.6 ui-monospace, monospace; color: #fff; background: #56606b; }
span.get { background: #1a6fb5; } span.post { background: #2c7a3f; } span.put { background: #9a6200; } span.delete { background: #b3312c; }
nav span { min-width: 3.1rem; font-size: .65rem; }
.refusal { margin: .1rem 0; font-size: .9rem; }
@media (max-width: 60rem) { body { display: block; } nav { position: static; height: auto; border-right: 0; } main { padding: 1rem; } }
`;

const styleDigest = createHash("sha256").update(style).digest("base64");

/** The policy allows this style and nothing else: no script, no picture, no frame, no form. */
export const openApiPagePolicy = `default-src 'none'; style-src 'sha256-${styleDigest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

const methods = ["get", "post", "put", "delete"] as const;

type Shown = {
  readonly method: string;
  readonly path: string;
  readonly operation: JsonObject;
};

/** Writes the page. Pure. */
export function openApiPage(document: JsonObject): string {
  const info = jsonObjectOf(document["info"]);
  const tags = Array.isArray(document["tags"]) ? document["tags"] : [];
  const names = tags.map((tag) => String(jsonObjectOf(tag)["name"]));
  const operations = operationsOf(document);
  const below = (name: string): readonly Shown[] =>
    operations.filter(({ operation }) => [operation["tags"]].flat().includes(name));
  const schemas = Object.entries(jsonObjectOf(jsonObjectOf(document["components"])["schemas"]));
  const sections = names.map((name) => section(name, below(name), document));
  const title = escapeHtml(String(info["title"]));
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<style>${style}</style>
<nav>
<a href="#top">${title}</a>
${names.map((name) => menu(name, below(name))).join("\n")}
<h2>Schemas</h2>
${schemas.map(([name]) => `<a href="#schema-${escapeHtml(name)}">${escapeHtml(name)}</a>`).join("\n")}
</nav>
<main id="top">
<h1>${title}</h1>
${paragraphs(info["description"])}
<p>All paths below begin with <code>${customerApiPrefix}</code>. The same as <a href="../openapi.json">OpenAPI document</a>; the <a href="../devlove-1.schema.json">JSON Schema of devlove/1</a>.
${sections.join("\n")}
<section><h2>Schemas</h2>
${schemas.map(([name, schema]) => schemaArticle(name, jsonObjectOf(schema))).join("\n")}
</section>
</main>
</html>
`;
}

function operationsOf(document: JsonObject): readonly Shown[] {
  return Object.entries(jsonObjectOf(document["paths"])).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const operation = jsonObjectOf(item)[method];
      return operation === undefined ? [] : [{ method, path, operation: jsonObjectOf(operation) }];
    }),
  );
}

function paragraphs(text: unknown): string {
  return String(text)
    .split("\n\n")
    .map((paragraph) => `<p>${prose(paragraph)}`)
    .join("\n");
}

function menu(name: string, shown: readonly Shown[]): string {
  const links = shown.map(
    ({ method, path, operation }) =>
      `<a href="#${escapeHtml(String(operation["operationId"]))}"><span class="${method}">${method.toUpperCase()}</span> ${escapeHtml(path)}</a>`,
  );
  return `<h2>${escapeHtml(name)}</h2>\n${links.join("\n")}`;
}

function section(name: string, shown: readonly Shown[], document: JsonObject): string {
  const resolve = (value: unknown): JsonObject => resolved(document, jsonObjectOf(value));
  const articles = shown.map(({ method, path, operation }) =>
    operationArticle(method, path, operation, resolve),
  );
  return `<section><h2>${escapeHtml(name)}</h2>\n${articles.join("\n")}\n</section>`;
}

/** Returns what a reference of the document leads to. */
function resolved(document: JsonObject, value: JsonObject): JsonObject {
  const { $ref } = value;
  if (typeof $ref !== "string") return value;
  const keys = $ref.slice(2).split("/");
  return keys.reduce<JsonObject>((found, key) => jsonObjectOf(found[key]), document);
}

function schemaArticle(name: string, schema: JsonObject): string {
  const free = schema["additionalProperties"];
  const inner = typeof free === "object" ? jsonObjectOf(jsonObjectOf(free)["items"]) : schema;
  return `<article id="schema-${escapeHtml(name)}"><h3>${escapeHtml(name)}</h3>
<p>${prose(schema["description"])}
${fieldTable(inner)}
</article>`;
}
