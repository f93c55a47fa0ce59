// Validates devlove documents and reports all errors: at central before anything is stored, and again in the
// agent before anything is served.

import { Value } from "typebox/value";
import { directoryUrlFault } from "../core/acme/directory-url.ts";
import { isMailAddress } from "../core/outgoing.ts";
import { backendHostFault, backendUrlFault } from "../core/serving/backend-url.ts";
import type { BackendRules } from "../core/serving/backend-url.ts";
import * as semantics from "../core/serving/devlove-semantics.ts";
import type { Fault } from "../core/serving/devlove-semantics.ts";
import { requestLimitFaults, requestLimitsFaults } from "../core/serving/limit-faults.ts";
import { mediaTypeFault } from "../core/serving/media-types.ts";
import { pauseEndFault } from "../core/serving/pause-end.ts";
import { parseJsonText } from "../core/journal/json-text.ts";
import { nearest } from "../core/nearest.ts";
import {
  cookiePatternFault,
  namePatternFault,
  pathPatternFault,
} from "../core/serving/path-pattern.ts";
import {
  DevloveSchema,
  DomainSchema,
  devloveBytesMax,
  devloveSchemaId,
} from "../core/serving/devlove.ts";
import type { PartsCheck, TextCheck } from "../core/serving/devlove-parts.ts";
import type { Devlove } from "../core/serving/devlove.ts";
import { pointer, quote, walkShape } from "./shape-errors.ts";
import type { ShapeError, ShapePath, ShapeSchema } from "./shape-errors.ts";
import { takeShape } from "./shape-taking.ts";

export type DevloveError = {
  /** JSON Pointer (RFC 6901) into the document. */
  readonly path: string;
  readonly message: string;
  readonly allowed?: readonly string[];
  readonly did_you_mean?: string;
};

export type DevloveContext = BackendRules & {
  /** Null if it is not known which domain the document is for; then any host names are accepted. */
  readonly mainDomain: string | null;
  readonly subDomains: readonly string[];
  /** The time by which pauses are judged. Undefined: the document was judged before. */
  readonly nowMs?: number;
};

export type DevloveValidation =
  | { readonly ok: true; readonly devlove: Devlove }
  | { readonly ok: false; readonly errors: readonly DevloveError[] };

/**
 * The most errors, more than anyone corrects at once; one more says how many were left out. 1 MiB can hold
 * 200,000.
 */
export const devloveErrorsMax = 1_000;
/** The most names that an error lists as allowed: a domain may have thousands of sub-domains. */
const allowedMax = 100;
/** The most errors that say what is allowed and what was meant; whoever made more has another problem. */
const explainedMax = 100;
/** The deepest nesting that is read; the schema is 8 levels deep. */
const depthMax = 64;

/**
 * Validates a devlove and never throws. Errors come in the order of the document, those of an object before
 * those of what is in it. Types and ranges are judged first, then what they mean and whether a part is served
 * yet.
 */
export function validateDevlove(
  schemaId: string,
  content: string,
  context: DevloveContext,
): DevloveValidation {
  const errors = new ErrorList();
  if (schemaId !== devloveSchemaId) {
    errors.add({
      path: [],
      message: `the schema ${quote(schemaId)} is not known`,
      allowed: [devloveSchemaId],
      mistaken: schemaId,
    });
  }
  if (isTooLong(content))
    errors.add({
      path: [],
      message: `the document is larger than 1 MiB (${devloveBytesMax} bytes of UTF-8)`,
    });
  // The content of another schema cannot be judged by these rules, and a document of any size is not read.
  return errors.isEmpty ? validateContent(content, context, errors) : errors.refusal();
}

function isTooLong(content: string): boolean {
  return (
    content.length > devloveBytesMax ||
    new TextEncoder().encode(content).byteLength > devloveBytesMax
  );
}

function validateContent(
  content: string,
  context: DevloveContext,
  errors: ErrorList,
): DevloveValidation {
  const json = parseJsonText(content, { depthMax, repeatedMax: devloveErrorsMax });
  if (!json.ok) {
    const { line, column, message } = json.fault;
    errors.add({
      path: [],
      message: `not valid JSON at line ${line}, column ${column}: ${message}`,
    });
    return errors.refusal();
  }
  for (const { path, line, column } of json.repeated) {
    errors.add({
      path,
      message: `${quote(String(path.at(-1)))} is given twice, again at line ${line}, column ${column}`,
    });
  }
  walkShape(DevloveSchema, json.value, {
    error: (error) => errors.add(error),
    found: (schema, value, path) => checkFound(schema, value, path, context, errors),
  });
  if (!errors.isEmpty) return errors.refusal();
  if (Value.Check(DevloveSchema, json.value)) return { ok: true, devlove: json.value };
  errors.add({ path: [], message: "the document does not match the schema" });
  return errors.refusal();
}

/**
 * Takes a document that an agent accepted before by its shape alone: what this release would say against it
 * is no reason not to serve it. What must always hold is judged where it happens: an origin that is this
 * agent itself, or a metadata service, is refused at each connection.
 */
export function takeDevlove(
  schemaId: string,
  content: string,
):
  | { readonly ok: true; readonly devlove: Devlove }
  | { readonly ok: false; readonly reason: string } {
  if (schemaId !== devloveSchemaId)
    return { ok: false, reason: `the schema ${quote(schemaId)} is not known` };
  const json = parseJsonText(content, { depthMax, repeatedMax: 0 });
  if (!json.ok) return { ok: false, reason: `not valid JSON: ${json.fault.message}` };
  const taken = takeShape(DevloveSchema, json.value);
  return taken.ok ? { ok: true, devlove: taken.value as Devlove } : taken;
}

class ErrorList {
  readonly #errors: DevloveError[] = [];
  #leftOut = 0;

  get isEmpty(): boolean {
    return this.#errors.length === 0;
  }

  add({ path, message: said, allowed, mistaken }: ShapeError): void {
    const count = this.#errors.length;
    const message = isOfDomain(path)
      ? `${said} here, but one of a domain: { "domains": { "www.example.com": { ${quote(String(path[0]))}: … } } }`
      : said;
    if (count >= devloveErrorsMax) this.#leftOut++;
    else if (count >= explainedMax || allowed === undefined) {
      this.#errors.push({ path: pointer(path), message });
    } else {
      const meant = mistaken === undefined ? undefined : nearest(mistaken, allowed);
      const listed = { path: pointer(path), message, allowed: allowed.slice(0, allowedMax) };
      this.#errors.push(meant === undefined ? listed : { ...listed, did_you_mean: meant });
    }
  }

  refusal(): DevloveValidation {
    const rest =
      this.#leftOut === 0 ? [] : [{ path: "", message: `and ${this.#leftOut} more errors` }];
    return { ok: false, errors: [...this.#errors, ...rest] };
  }
}

/** Whether a key of a domain stands where the domains have to. */
function isOfDomain(path: ShapePath): boolean {
  return path.length === 1 && String(path[0]) in DomainSchema.properties;
}

function checkFound(
  schema: ShapeSchema,
  value: unknown,
  path: ShapePath,
  context: DevloveContext,
  errors: ErrorList,
): void {
  // Names need no such check: known names have no surrogates, and the checks of free ones refuse them.
  if (typeof value === "string" && !value.isWellFormed()) {
    errors.add({
      path,
      message: `${quote(value)} has half a surrogate pair: UTF-8 has no such character`,
    });
    return;
  }
  const uniqueBy = schema["x-unique-by"];
  if (uniqueBy !== undefined && Array.isArray(value)) checkUnique(uniqueBy, value, path, errors);
  const keyCheck = schema["x-key-check"];
  if (keyCheck !== undefined && isParts(value))
    checkNames(keyCheck, Object.keys(value), path, context, errors);
  const check = schema["x-check"];
  if (check === undefined) return;
  if (typeof value === "string") checkText(check, value, path, context, errors);
  else
    for (const fault of partsFaults(check, value))
      errors.add({ path: [...path, ...fault.path], message: fault.message });
}

function checkUnique(
  by: string,
  items: readonly unknown[],
  path: ShapePath,
  errors: ErrorList,
): void {
  const seen = new Map<unknown, number>();
  for (const [at, item] of items.entries()) {
    const value = by === "" ? item : isParts(item) ? item[by] : undefined;
    if (typeof value !== "string" && typeof value !== "number") continue;
    const before = seen.get(value);
    if (before === undefined) seen.set(value, at);
    else
      errors.add({
        path: [...path, at],
        message: `${quote(String(value))} is already at ${pointer([...path, before])}`,
      });
  }
}

function checkNames(
  check: string,
  names: readonly string[],
  path: ShapePath,
  context: DevloveContext,
  errors: ErrorList,
): void {
  const known =
    check === "domain" && context.mainDomain !== null
      ? [context.mainDomain, ...context.subDomains]
      : undefined;
  const allowed = new Set(known);
  for (const name of names) {
    if (check === "domain" && name.startsWith("*")) {
      errors.add({
        path: [...path, name],
        message: `${quote(name)} is a wildcard: name each host. No certificate for a wildcard is ordered either, because \`tls.acme\` proves hosts one by one (HTTP-01); upload one`,
      });
      continue;
    }
    if (known === undefined) checkText(check, name, [...path, name], context, errors);
    else if (!allowed.has(name)) {
      const message = `${quote(name)} is neither the main domain of this document nor one of its sub-domains`;
      errors.add({ path: [...path, name], message, allowed: known, mistaken: name });
    }
  }
}

type TextRule = (text: string, context: DevloveContext) => string | undefined;

const TEXT_CHECKS: Record<TextCheck, TextRule> = {
  acme_directory: directoryUrlFault,
  address_range: semantics.addressRangeFault,
  backend_host: backendHostFault,
  backend_url: backendUrlFault,
  cookie_pattern: cookiePatternFault,
  domain: semantics.domainNameFault,
  file_path: semantics.filePathFault,
  header_name: semantics.headerNameFault,
  header_value: semantics.headerValueFault,
  index_name: semantics.indexNameFault,
  mail_address: (text) => (isMailAddress(text) ? undefined : "is not a mail address"),
  match_header: semantics.matchHeaderFault,
  match_query: semantics.matchQueryFault,
  match_value: semantics.matchValueFault,
  media_type: mediaTypeFault,
  origin_path: semantics.originPathFault,
  path_pattern: pathPatternFault,
  pause_end: (text, { nowMs }) => pauseEndFault(text, nowMs),
  preset_base: semantics.presetBaseFault,
  purge_key: semantics.purgeKeyFault,
  query_name: namePatternFault,
  redirect_target: semantics.redirectTargetFault,
  request_header: semantics.requestHeaderFault,
  vary_header: semantics.varyHeaderFault,
  views_dir: semantics.viewsDirFault,
};

const textChecks: ReadonlyMap<string, TextRule> = new Map(Object.entries(TEXT_CHECKS));

function checkText(
  check: string,
  text: string,
  path: ShapePath,
  context: DevloveContext,
  errors: ErrorList,
): void {
  const fault = textChecks.get(check)?.(text, context);
  if (fault !== undefined) errors.add({ path, message: `${quote(text)} ${fault}` });
}

type PartsRule = (value: unknown) => readonly Fault[];

function ofObject(rule: (parts: Readonly<Record<string, unknown>>) => readonly Fault[]): PartsRule {
  return (value) => (isParts(value) ? rule(value) : []);
}

function ofList(rule: (items: readonly unknown[]) => readonly Fault[]): PartsRule {
  return (value) => (Array.isArray(value) ? rule(value) : []);
}

const PARTS_CHECKS: Record<PartsCheck, PartsRule> = {
  cache: ofObject(semantics.cacheFaults),
  cache_rules: ofList(semantics.cacheRulesFaults),
  match: ofObject(semantics.matchFaults),
  cookies: ofObject(semantics.cookiesFaults),
  headers: ofObject(semantics.headersFaults),
  preset: ofObject(semantics.presetFaults),
  query: ofObject(semantics.queryFaults),
  request_limit: ofObject(requestLimitFaults),
  request_limits: ofList(requestLimitsFaults),
  redirects: ofList(semantics.redirectsFaults),
};

const partsChecks: ReadonlyMap<string, PartsRule> = new Map(Object.entries(PARTS_CHECKS));

function partsFaults(check: string, value: unknown): readonly Fault[] {
  return partsChecks.get(check)?.(value) ?? [];
}

function isParts(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
