// What the OpenAPI document promises, as a check of exchanges: every answer that passes through is held against it, and an answer that tells more fails as well.

import { Compile } from "typebox/schema";
import type { JsonObject } from "../../src/central/api/openapi/openapi-schema.ts";

export type Exchange = {
  readonly method: string;
  /** As it was asked for, with the query. */
  readonly path: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Parsed, where it is JSON. */
  readonly body: unknown;
};

export type Operation = {
  readonly method: string;
  /** Below the server's prefix, parameters in braces. */
  readonly path: string;
  readonly told: JsonObject;
};

export type Contract = {
  readonly operations: readonly Operation[];
  readonly operationOf: (method: string, path: string) => Operation | undefined;
  /** What of an exchange the document does not allow; empty: nothing. */
  readonly faults: (exchange: Exchange) => readonly string[];
  /** What is wrong with a value of a schema of the document. */
  readonly schemaFaults: (schema: unknown, value: unknown) => readonly string[];
};

const prefix = "/presentation-api/v1";

export function at(value: unknown, ...keys: readonly string[]): unknown {
  let found = value;
  for (const key of keys)
    found =
      typeof found === "object" && found !== null
        ? Object.getOwnPropertyDescriptor(found, key)?.value
        : undefined;
  return found;
}

/** The same schema, in which objects have no members but those that are told. */
function strict(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map((one) => strict(one));
  if (typeof schema !== "object" || schema === null) return schema;
  const inner = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      key === "example" || key === "examples" || key === "const" || key === "enum"
        ? value
        : strict(value),
    ]),
  );
  const isOpen = inner["type"] === "object" && !("additionalProperties" in inner);
  return isOpen && "properties" in inner ? { ...inner, additionalProperties: false } : inner;
}

function operationsOf(document: JsonObject): readonly Operation[] {
  return Object.entries(Object(document["paths"])).flatMap(([path, item]) =>
    Object.entries(Object(item)).map(([method, told]) => ({
      method: method.toUpperCase(),
      path,
      told: Object(told),
    })),
  );
}

function matcherOf(path: string): { readonly pattern: RegExp; readonly literals: number } {
  const parts = path.split("/").filter((part) => part !== "");
  const literals = parts.filter((part) => !part.startsWith("{")).length;
  const source = parts.map((part) =>
    part.startsWith("{") ? "[^/]+" : part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"),
  );
  return { pattern: new RegExp(`^/${source.join("/")}/?$`), literals };
}

export function createContract(document: JsonObject): Contract {
  const operations = operationsOf(document);
  const table = operations
    .map((operation) => ({ operation, ...matcherOf(operation.path) }))
    .sort((a, b) => b.literals - a.literals);
  const components = strict(document["components"]);
  const compiled = new Map<string, ReturnType<typeof Compile>>();
  const schemaFaults = (schema: unknown, value: unknown): readonly string[] => {
    const key = JSON.stringify(schema);
    const validator = compiled.get(key) ?? Compile({ ...Object(strict(schema)), components });
    compiled.set(key, validator);
    const [isValid, errors] = validator.Errors(value);
    if (isValid) return [];
    return errors.map(({ instancePath, message }) => `${instancePath} ${message}`);
  };
  const operationOf = (method: string, path: string): Operation | undefined => {
    const below = path.split("?", 1)[0]?.replace(prefix, "") ?? "";
    const asked = method === "HEAD" ? "GET" : method;
    const literals = table.find(({ pattern }) => pattern.test(below))?.literals;
    return table.find(
      (row) =>
        row.literals === literals && row.pattern.test(below) && row.operation.method === asked,
    )?.operation;
  };
  const faults = (exchange: Exchange): readonly string[] => {
    const operation = operationOf(exchange.method, exchange.path);
    return [
      ...headerFaults(exchange),
      ...(exchange.status >= 400 ? refusalFaults(exchange, operation, schemaFaults) : []),
      ...(exchange.status < 400 ? goodFaults(exchange, operation, schemaFaults) : []),
    ];
  };
  return { operations, operationOf, faults, schemaFaults };
}

type SchemaFaults = Contract["schemaFaults"];

function headerFaults({ headers }: Exchange): readonly string[] {
  return [
    ...(/^[0-9a-f]{16}$/.test(String(headers["x-request-id"])) ? [] : ["no X-Request-Id"]),
    ...(headers["cache-control"] === "no-store" ? [] : ["may be stored by caches"]),
  ];
}

const unrouted = new Set([404, 405]);

function refusalFaults(
  { method, status, headers, body }: Exchange,
  operation: Operation | undefined,
  schemaFaults: SchemaFaults,
): readonly string[] {
  const told = operation === undefined ? undefined : at(operation.told, "responses", `${status}`);
  const isTold = operation === undefined ? unrouted.has(status) : told !== undefined;
  const needs = { 401: "www-authenticate", 405: "allow", 429: "retry-after", 503: "retry-after" };
  const needed = Object.entries(needs).find(([of]) => of === String(status))?.[1];
  const errors: unknown = at(body, "errors");
  return [
    ...(isTold ? [] : [`${status} is not in the document`]),
    ...(headers["content-type"] === "application/problem+json" ? [] : ["is no problem document"]),
    ...(method === "HEAD"
      ? []
      : schemaFaults({ $ref: "#/components/schemas/Problem" }, body).map((one) => `body${one}`)),
    ...(method === "HEAD" || at(body, "status") === status ? [] : ["tells another status"]),
    ...(needed === undefined || headers[needed] !== undefined ? [] : [`has no ${needed}`]),
    ...(status !== 400 || method === "HEAD" || (Array.isArray(errors) && errors.length > 0)
      ? []
      : ["does not name what is wrong"]),
  ];
}

function goodFaults(
  { method, status, headers, body }: Exchange,
  operation: Operation | undefined,
  schemaFaults: SchemaFaults,
): readonly string[] {
  const answer = at(operation?.told, "responses", String(status));
  if (answer === undefined) return [`${status} is not in the document`];
  const told = Object.keys(Object(at(answer, "headers"))).map((name) => name.toLowerCase());
  const stray = ["link", "idempotency-replayed", "retry-after"].filter(
    (name) => headers[name] !== undefined && !told.includes(name),
  );
  const content = Object(at(answer, "content") ?? {});
  const type = String(headers["content-type"] ?? "");
  const media = at(content, type);
  const strays = stray.map((name) => `the header ${name} is not in the document`);
  if (Object.keys(content).length === 0)
    return [...strays, ...(body === undefined ? [] : ["has a body"])];
  if (media === undefined) return [...strays, `${type} is not in the document`];
  const schema = at(media, "schema");
  if (schema === undefined || method === "HEAD") return strays;
  return [...strays, ...schemaFaults(schema, body).map((one) => `body${one}`)];
}

/** Throws for an exchange that the document does not allow. */
export function hold(contract: Contract, exchange: Exchange): void {
  const faults = contract.faults(exchange);
  if (faults.length === 0) return;
  const { method, path, status, body } = exchange;
  const shown = JSON.stringify(body)?.slice(0, 2_000) ?? "";
  throw new Error(
    `${method} ${path} ${status} is not what the OpenAPI document says: ${faults.join("; ")}\n${shown}`,
  );
}
