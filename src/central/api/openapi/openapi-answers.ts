// Answers in the OpenAPI document: what a good one carries, and the refusals, which are the same everywhere.

import type { Gives } from "../../../wire/customer/operation.ts";
import type { Endpoint } from "../http/endpoint.ts";
import { jsonObjectOf, shownSchema, type Components, type JsonObject } from "./openapi-schema.ts";
import { listLimitMax } from "../http/respond.ts";

const ref = (kind: string, name: string): JsonObject => ({ $ref: `#/components/${kind}/${name}` });
const requestId = { "X-Request-Id": ref("headers", "RequestId") };

type Refused = { readonly name: string; readonly description: string; readonly header?: string };

const refusals: Readonly<Record<number, Refused>> = {
  400: { name: "BadRequest", description: "The request is not valid; `errors` name the fields." },
  401: {
    name: "Unauthorized",
    description: "No credentials, or unknown ones.",
    header: "WWW-Authenticate",
  },
  403: {
    name: "Forbidden",
    description:
      "The credentials are known, but the call is not allowed; a token's role or its domains may be too small.",
  },
  404: {
    name: "NotFound",
    description: "There is no such thing, or it belongs to another customer.",
  },
  408: { name: "TooSlow", description: "The body took too long." },
  409: {
    name: "Conflict",
    description:
      "What is stored does not allow it, or the `Idempotency-Key` was used for another request.",
  },
  412: {
    name: "Changed",
    description: "What is there is not what `If-Match` or `If-None-Match` says.",
  },
  413: { name: "TooLarge", description: "The body is too large." },
  415: { name: "UnsupportedType", description: "The body is of another type, or encoded." },
  429: { name: "TooMany", description: "Too many requests of this kind.", header: "Retry-After" },
  500: { name: "Failed", description: "Central failed; its log has more under `request_id`." },
  503: { name: "Unavailable", description: "Not now; try again.", header: "Retry-After" },
};

const headers: JsonObject = {
  RequestId: {
    description: "The id of this request, as in central's log.",
    schema: { type: "string" },
  },
  Link: {
    description: 'If there is more: the path of the next page, `rel="next"`.',
    schema: { type: "string" },
  },
  ETag: {
    description: "The entity tag of all that is there, for `If-Match`.",
    schema: { type: "string" },
  },
  RetryAfter: { description: "How many seconds to wait.", schema: { type: "integer", minimum: 1 } },
  WWWAuthenticate: { description: "How to sign in.", schema: { type: "string" } },
  IdempotencyReplayed: {
    description: "True when this is the answer to the first request with the `Idempotency-Key`.",
    schema: { type: "string", const: "true" },
  },
};

/** Returns the headers and refusals that all operations share. */
export function answerComponents(components: Components, problem: unknown): JsonObject {
  const schema = shownSchema(problem, components);
  const responses = Object.values(refusals).map(({ name, description, header }) => [
    name,
    {
      description,
      headers: {
        ...requestId,
        ...(header !== undefined && { [header]: ref("headers", header.replaceAll("-", "")) }),
      },
      content: { "application/problem+json": { schema } },
    },
  ]);
  return {
    headers,
    responses: Object.fromEntries(responses),
  };
}

/** Returns all that an endpoint may answer, by status. */
export function answersOf(endpoint: Endpoint, components: Components): JsonObject {
  const statuses = [...new Set([...refusedBy(endpoint), 500, 503])].sort((a, b) => a - b);
  const refused = statuses.map((status) => [
    String(status),
    ref("responses", refusals[status]?.name ?? "Failed"),
  ]);
  const { gives } = endpoint;
  return {
    [gives.status]: goodAnswer(endpoint, gives, components),
    ...Object.fromEntries(refused),
  };
}

function refusedBy(endpoint: Endpoint): readonly number[] {
  const { auth, body, needs, takesStream, method, path, refuses } = endpoint;
  return [
    // A query parameter that the endpoint does not know.
    400,
    ...(auth === "none" ? [] : [401, 429]),
    ...(needs === undefined ? [] : [403]),
    ...(body === undefined && takesStream === undefined ? [] : [408, 413, 415]),
    ...(method === "POST" ? [409] : []),
    // A parameter that cannot be decoded names nothing.
    ...(path.includes(":") ? [404] : []),
    ...(refuses ?? []),
  ];
}

function goodAnswer(
  { method, query, isTagged }: Endpoint,
  gives: Gives,
  components: Components,
): JsonObject {
  const leadsOn = gives.kind === "list" || query?.["after"] !== undefined;
  const told = {
    ...requestId,
    ...(isTagged && { ETag: ref("headers", "ETag") }),
    ...(leadsOn && { Link: ref("headers", "Link") }),
    ...(method === "POST" && { "Idempotency-Replayed": ref("headers", "IdempotencyReplayed") }),
  };
  switch (gives.kind) {
    case "nothing":
      return { description: "Done. The answer has no body.", headers: told };
    case "media":
      return { description: "Done.", headers: told, content: { [gives.type]: {} } };
    case "json": {
      const content = { "application/json": media(gives.schema, components) };
      return { description: gives.status === 201 ? "Made." : "Done.", headers: told, content };
    }
    case "list": {
      const examples = [examplesOf(gives.schema).slice(0, 1)];
      const schema = { type: "array", items: gives.schema, examples };
      return {
        description: "In order of id.",
        headers: told,
        content: { "application/json": media(schema, components) },
      };
    }
    default:
      return gives satisfies never;
  }
}

/** Returns a schema with its examples beside it. */
export function media(schema: unknown, components: Components): JsonObject {
  const examples = examplesOf(schema).map((value, at) => [`example-${at + 1}`, { value }] as const);
  const { examples: _shown, ...shown } = shownSchema(schema, components);
  return { schema: shown, examples: Object.fromEntries(examples) };
}

/** Returns the examples of a schema; for a choice, those of its branches. */
function examplesOf(schema: unknown): readonly unknown[] {
  const { examples, anyOf } = jsonObjectOf(schema);
  if (Array.isArray(examples)) return examples;
  return Array.isArray(anyOf) ? anyOf.flatMap((branch) => examplesOf(branch)) : [];
}

/** The parameters that all lists have. */
export const listParameters: JsonObject = {
  Limit: {
    name: "limit",
    in: "query",
    description: "The largest number of elements. Without it the whole list is sent.",
    schema: { type: "integer", minimum: 1, maximum: listLimitMax },
  },
  After: {
    name: "after",
    in: "query",
    description: "Only elements with larger ids.",
    schema: { type: "integer", minimum: 0, default: 0 },
  },
};
