// The OpenAPI 3.1 document, made from the rows and schemas that route and validate.

import { problemShape } from "../../../wire/customer/problem.ts";
import { customerApiPrefix } from "../../../wire/customer/shape.ts";
import { botListJson, botListText } from "../../../wire/customer/bot-list.ts";
import type { Endpoint, StreamTaken } from "../http/endpoint.ts";
import { answerComponents, answersOf, listParameters, media } from "./openapi-answers.ts";
import { pathParameters } from "./openapi-parameters.ts";
import { shownInline, type Components, type JsonObject } from "./openapi-schema.ts";
import type { Subject } from "../resources.ts";

export const openApiPath = `${customerApiPrefix}/openapi.json`;

const description = `Steers a fleet of web accelerators: deployment sites, domains, what they serve, which bots they let in, and what they cached.

Every path is served with and without the slash at its end. If two paths fit, the one with a fixed first part is meant, because a domain has a dot. An empty body counts as \`{}\`. Unknown fields and query parameters are refused and named (\`format=json\` is accepted, and changes nothing). Read-only fields may be sent back as they were read. Every refusal is a problem document (RFC 9457). What belongs to another customer is answered with 404, as if it did not exist. Ids are integers, times are ISO 8601 in UTC. A POST with an \`Idempotency-Key\` is carried out once: if it is repeated within 24 hours, it gets the first answer.`;

const securitySchemes: JsonObject = {
  Token: {
    type: "apiKey",
    in: "header",
    name: "Authorization",
    description:
      "`Authorization: Token <API_TOKEN>`, as `POST /trial/` gives it, or one of `POST /tokens/`. Each operation names the role that a token needs at least: read, clear, write, owner. Where its `x-token-scope` is `customer`, a token that is for some domains alone is refused; where it is `domain`, it sees and changes those.",
  },
  Session: {
    type: "apiKey",
    in: "cookie",
    name: "__Host-accel-session",
    description:
      "The cookie of a browser that signed in by `POST /session/`. It counts for requests with `Sec-Fetch-Site: same-origin`; those that change something need the header `X-Accel-Console` besides.",
  },
  Basic: {
    type: "http",
    scheme: "basic",
    description: "Username and password of a user. Packages are uploaded by those who may publish.",
  },
};

const idempotencyKey: JsonObject = {
  name: "Idempotency-Key",
  in: "header",
  description:
    "Makes the request safe to repeat for 24 hours. Without credentials (`/trial/`, `/tokens/start-recovery/`) it must have at least 16 characters that nobody else comes upon, such as a UUID.",
  schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[\\x21-\\x7e]+$" },
};

const ifMatch: JsonObject = {
  name: "If-Match",
  in: "header",
  description:
    "The `ETag` of what is to be changed: if something else is there by now, nothing is changed (412). `If-None-Match: *` changes something only where nothing is there.",
  schema: { type: "string" },
};

/** Makes the document. Pure. Throws if two schemas with the same title differ. */
export function openApiDocument(subjects: readonly Subject[]): JsonObject {
  const components: Components = new Map();
  const { responses, headers } = answerComponents(components, problemShape.schema);
  const paths = new Map<string, JsonObject>();
  for (const { title, endpoints } of subjects) {
    for (const endpoint of endpoints) {
      const path = endpoint.path.replaceAll(/:(\w+)/g, "{$1}");
      const method = endpoint.method.toLowerCase();
      const operation = operationOf(title, endpoint, components);
      paths.set(path, { ...paths.get(path), [method]: operation });
    }
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "Acceleration Service Customer API",
      version: "1",
      description,
      license: { name: "Apache License 2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: customerApiPrefix }],
    tags: subjects.map(({ title, about }) => ({ name: title, description: about })),
    paths: Object.fromEntries(paths),
    components: {
      schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
      responses,
      headers,
      parameters: { ...listParameters, IdempotencyKey: idempotencyKey, IfMatch: ifMatch },
      securitySchemes,
    },
  };
}

function operationOf(tag: string, endpoint: Endpoint, components: Components): JsonObject {
  const { auth, id, needs, summary } = endpoint;
  const body = bodyOf(endpoint, components);
  return {
    tags: [tag],
    summary,
    operationId: id,
    security: securityOf(auth, needs),
    ...(needs !== undefined && { "x-token-scope": needs.scope }),
    parameters: parametersOf(endpoint),
    ...(body !== undefined && { requestBody: body }),
    responses: answersOf(endpoint, components),
  };
}

function securityOf(auth: Endpoint["auth"], needs: Endpoint["needs"]): readonly JsonObject[] {
  if (needs !== undefined) return [{ Token: [needs.role] }, { Session: [needs.role] }];
  const credentials = {
    none: [],
    token: [{ Token: [] }],
    basic: [{ Basic: [] }],
    "sign-in": [{ Token: [] }, { Basic: [] }],
  };
  return credentials[auth];
}

function parametersOf({
  auth,
  method,
  path,
  query,
  gives,
  isTagged,
}: Endpoint): readonly JsonObject[] {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
  const shared = (name: string): JsonObject => ({ $ref: `#/components/parameters/${name}` });
  return [
    ...names.map((name) => ({
      name,
      in: "path",
      required: true,
      ...(pathParameters[name] ?? { schema: { type: "string" } }),
    })),
    ...Object.entries(query ?? {}).map(([name, told]) => ({ name, in: "query", ...told })),
    ...(gives.kind === "list" ? [shared("Limit"), shared("After")] : []),
    ...(isTagged === true && method !== "GET" ? [shared("IfMatch")] : []),
    ...(method === "POST" && auth !== "sign-in" ? [shared("IdempotencyKey")] : []),
  ];
}

/** Bodies that are taken as they come: one part with a file, or a list. */
const streams = (components: Components): Readonly<Record<StreamTaken, JsonObject>> => ({
  file: {
    "multipart/form-data": {
      schema: {
        type: "object",
        required: ["file"],
        properties: { file: { type: "string", contentMediaType: "application/octet-stream" } },
      },
    },
  },
  addresses: {
    "text/plain": media(botListText, components),
    "application/json": media(botListJson, components),
  },
});

function bodyOf(
  { body, takesForms, takesStream }: Endpoint,
  components: Components,
): JsonObject | undefined {
  if (takesStream !== undefined)
    return { required: true, content: streams(components)[takesStream] };
  if (body === undefined) return undefined;
  const { examples: _lifted, title: _title, ...schema } = withReadOnly(body, components);
  const { examples } = media({ ...body.schema, title: undefined }, components);
  const content = { schema, examples };
  return {
    required: "required" in schema,
    content: {
      "application/json": content,
      ...(takesForms && { "multipart/form-data": { schema } }),
    },
  };
}

/** Adds the read-only fields, which may be sent back and so count as known. */
function withReadOnly(
  { schema, readOnly }: NonNullable<Endpoint["body"]>,
  components: Components,
): JsonObject {
  const shown = shownInline(schema, components);
  const properties = Object(shown["properties"]);
  const ignored = readOnly
    .filter((name) => !(name in properties))
    .map((name) => [name, { readOnly: true, description: "May be sent back; ignored." }]);
  return { ...shown, properties: { ...properties, ...Object.fromEntries(ignored) } };
}
