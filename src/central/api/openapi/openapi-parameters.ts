// What the parameters of paths mean, by name, for the OpenAPI document. Paths are taken literally: a text
// that is no id names nothing and is a 404.

import type { JsonObject } from "./openapi-schema.ts";

export type PathParameter = { readonly schema: JsonObject; readonly description: string };

const integer = (example: number): JsonObject => ({
  type: "integer",
  minimum: 1,
  examples: [example],
});
const text = (example: string): JsonObject => ({
  type: "string",
  minLength: 1,
  examples: [example],
});
const id = (what: string, example: number): PathParameter => ({
  schema: integer(example),
  description: `Id of the ${what}.`,
});
const domain: PathParameter = {
  schema: text("www.example.com"),
  description: "Name of a main domain. For clearing and status it may also be a sub-domain.",
};
const viewset: PathParameter = {
  schema: { ...text("spring"), maxLength: 255 },
  description: "Name of a viewset version of the domain.",
};

export const pathParameters: Readonly<Record<string, PathParameter>> = {
  bot: { schema: { ...text("Scraper"), maxLength: 255 }, description: "Name of a bot." },
  certificate_id: id("certificate", 41),
  channel_id: id("channel", 71),
  clear_id: {
    schema: text("6f1d2c3b4a59687786950a1b2c3d4e5f"),
    description: "Id of the clear.",
  },
  customer_id: id("customer", 3),
  deployment_id: id("deployment site", 7),
  deployment_name: {
    schema: text("5f0c9a7be3d21846"),
    description: "The name16 of the deployment site.",
  },
  deployment_site_id: id("deployment site", 7),
  devlove_id: id("devlove file", 31),
  domain,
  domain_name: domain,
  order_id: id("certificate order", 3),
  file: {
    schema: text("accel_agent-1.4.0-py3-none-any.whl"),
    description: "Name of the file.",
  },
  enrolment_id: id("code", 12),
  token_id: id("token", 12),
  list: {
    schema: { type: "string", enum: ["bad", "vip"], examples: ["bad"] },
    description: "The bad bots or the VIP bots.",
  },
  name: domain,
  pk: id("user", 5),
  request_id: {
    schema: text("1795000000250000.2026-11-18.812"),
    description: "The request_id of a request.",
  },
  range: {
    schema: text("192.0.2.0_24"),
    description:
      "An address, or a range as `<address>_<prefix length>`. With `is_custom_ip_range` in the body, `<start>_<n>` means the n+1 addresses from the start on.",
  },
  symenckey_id: id("symmetric key", 21),
  tag: { schema: text("production"), description: "A tag of deployment sites." },
  version: { schema: text("1.4.0"), description: "Version of the package (PEP 440)." },
  viewset,
  viewset_id: id("viewset version", 61),
  viewset_name: viewset,
};
