// Pieces of the page of the API: texts made safe, schemas as tables of fields, one operation as an article.

import { jsonObjectOf, type JsonObject } from "./openapi-schema.ts";
import { escapeHtml } from "../../../core/html-text.ts";

/** Returns a text or a number of the document; anything else is not shown. */
function wordOf(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

/** Writes a description, in which backticks are code. */
export function prose(text: unknown): string {
  return escapeHtml(wordOf(text)).replaceAll(/`([^`]+)`/g, "<code>$1</code>");
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function refName(schema: JsonObject): string | undefined {
  const { $ref } = schema;
  return typeof $ref === "string" ? $ref.slice($ref.lastIndexOf("/") + 1) : undefined;
}

/** Names a type, such as `array of Domain`, with its limits. */
function typeOf(schema: JsonObject): string {
  const name = refName(schema);
  if (name !== undefined) return `<a href="#schema-${escapeHtml(name)}">${escapeHtml(name)}</a>`;
  const { type, items, anyOf, additionalProperties: free } = schema;
  const values = listOf(schema["enum"]);
  if ("const" in schema) return code(schema["const"]);
  if (values.length > 0) return values.map((value) => code(value)).join(", ");
  if (anyOf !== undefined)
    return listOf(anyOf)
      .map((branch) => typeOf(jsonObjectOf(branch)))
      .join(" or ");
  if (type === "array") return `array of ${typeOf(jsonObjectOf(items))}`;
  if (type === "object" && typeof free === "object")
    return `object, each ${typeOf(jsonObjectOf(free))}`;
  return `${escapeHtml(wordOf(type ?? "anything"))}${limitsOf(schema)}`;
}

function limitsOf({ minimum, maximum, minLength, maxLength }: JsonObject): string {
  const range = (from: unknown, to: unknown, unit: string): string => {
    if (to === undefined || to === Number.MAX_SAFE_INTEGER) return "";
    return `, ${from === undefined ? "at most " : `${wordOf(from)}–`}${wordOf(to)}${unit}`;
  };
  return range(minimum, maximum, "") + range(minLength, maxLength, " characters");
}

function code(value: unknown): string {
  return `<code>${escapeHtml(JSON.stringify(value))}</code>`;
}

type Field = { readonly name: string; readonly isRequired: boolean; readonly schema: JsonObject };

/** Returns the members of an object and of the objects in it, by their place. */
function fieldsOf(schema: JsonObject, prefix = ""): readonly Field[] {
  const required = new Set(listOf(schema["required"]));
  return Object.entries(jsonObjectOf(schema["properties"])).flatMap(([key, value]) => {
    const child = jsonObjectOf(value);
    const inner = child["type"] === "array" ? jsonObjectOf(child["items"]) : child;
    const name = `${prefix}${key}`;
    const below = fieldsOf(inner, `${name}${inner === child ? "." : "[]."}`);
    return [{ name, isRequired: required.has(key), schema: child }, ...below];
  });
}

export function fieldTable(schema: JsonObject): string {
  const fields = fieldsOf(schema).filter(({ schema: field }) => field["readOnly"] !== true);
  if (fields.length === 0) return "";
  const rows = fields.map(
    ({ name, isRequired, schema: field }) =>
      `<tr><td><code>${escapeHtml(name)}</code>${isRequired ? "" : " <small>optional</small>"}<td>${typeOf(field)}<td>${prose(field["description"])}`,
  );
  return `<table><tr><th>Field<th>Type<th>\n${rows.join("\n")}\n</table>`;
}

function example(value: unknown): string {
  return `<pre>${escapeHtml(JSON.stringify(value, undefined, 2))}</pre>`;
}

function examplesOf(media: JsonObject): string {
  return Object.values(jsonObjectOf(media["examples"]))
    .map((one) => example(jsonObjectOf(one)["value"]))
    .join("\n");
}

function parameterTable(parameters: readonly JsonObject[]): string {
  if (parameters.length === 0) return "";
  const rows = parameters.map(
    ({ name, in: where, schema, description }) =>
      `<tr><td><code>${escapeHtml(String(name))}</code> <small>${escapeHtml(String(where))}</small><td>${typeOf(jsonObjectOf(schema))}<td>${prose(description)}`,
  );
  return `<table><tr><th>Parameter<th>Type<th>\n${rows.join("\n")}\n</table>`;
}

type Resolve = (value: unknown) => JsonObject;

function bodyPart(operation: JsonObject): string {
  const contents = Object.entries(jsonObjectOf(jsonObjectOf(operation["requestBody"])["content"]));
  const [first] = contents;
  if (first === undefined) return "";
  const types = contents.map(([type]) => `<code>${escapeHtml(type)}</code>`).join(" or ");
  const media = jsonObjectOf(first[1]);
  const schema = jsonObjectOf(media["schema"]);
  return `<h4>Body <small>${types}</small></h4><p>${prose(schema["description"])}${fieldTable(schema)}${examplesOf(media)}`;
}

function answerPart(operation: JsonObject, resolve: Resolve): string {
  const answers = Object.entries(jsonObjectOf(operation["responses"]));
  const shown = answers.map(([status, given]) => {
    const answer = resolve(given);
    const [media] = Object.entries(jsonObjectOf(answer["content"]));
    const content = jsonObjectOf(media?.[1]);
    if (Number(status) >= 400)
      return `<p class="refusal"><b>${status}</b> ${prose(answer["description"])}`;
    const type = media === undefined ? "" : typeOf(jsonObjectOf(content["schema"]));
    return `<p><b>${status}</b> ${prose(answer["description"])} ${type}${examplesOf(content)}`;
  });
  return `<h4>Answers</h4>${shown.join("\n")}`;
}

/** Says who may call an operation. */
function accessOf(operation: JsonObject): string {
  const schemes = listOf(operation["security"]).flatMap((one) => Object.entries(jsonObjectOf(one)));
  const [first] = schemes;
  if (first === undefined) return "no credentials";
  const [, roles] = first;
  if (operation["x-token-scope"] === undefined)
    return `${schemes.map(([name]) => name).join(" or ")} credentials`;
  const role = listOf(roles).map(String).join(", ");
  const scope = operation["x-token-scope"] === "customer" ? ", for all domains" : "";
  return `a token of the role ${role}${scope}`;
}

export function operationArticle(
  method: string,
  path: string,
  operation: JsonObject,
  resolve: Resolve,
): string {
  const parameters = listOf(operation["parameters"]).map((one) => resolve(one));
  return `<article id="${escapeHtml(String(operation["operationId"]))}">
<h3><span class="${method}">${method.toUpperCase()}</span> <code>${escapeHtml(path)}</code></h3>
<p>${prose(operation["summary"])}. <small>Needs ${escapeHtml(accessOf(operation))}.</small>
${parameterTable(parameters)}
${bodyPart(operation)}
${answerPart(operation, resolve)}
</article>`;
}
