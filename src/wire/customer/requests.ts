// `/requests/{domain}/`: the requests of a domain with everything that is kept of them, searched newest first or
// followed as they arrive.

import { Type, type Static } from "typebox";
import { limitKinds, limitReasons } from "../../core/limits/limit-verdict.ts";
import { verdictReasons, verdictKinds } from "../../core/serving/verdict.ts";
import { RequestRecord } from "../request-log.ts";
import type { QueryParameter } from "./operation.ts";
import { Id, open, shape } from "./shape.ts";

export const requestsLimitMax = 500;
export const requestsLimitDefault = 100;
/** The longest text of a filter, in UTF-16 units: that of the longest target that is kept. */
export const requestFilterCharsMax = 8_192;
/** Values of `cache`. */
export const cacheOutcomes: readonly string[] = RequestRecord.properties.cache.anyOf.map(
  (one) => one.const,
);

/** What records say of visitors, and why. */
const toldKinds: readonly string[] = [...verdictKinds, ...limitKinds];
const toldReasons: readonly string[] = [...verdictReasons, ...limitReasons];

const entry = {
  request_id: Type.String({ description: "Names the request; what it is made of may change." }),
  when: Type.Number({ description: "When it came, in seconds since the epoch." }),
  deployment_site_id: Id,
  connection: Type.Number({
    description: "The number of the connection since the start of the agent.",
  }),
  client_address: Type.String({
    description: "The address of the visitor, as text; empty where none was known.",
  }),
  method: Type.String(),
  authority: Type.String({
    description: "The host that was asked for, as sent; empty where none was.",
  }),
  path: Type.String({
    description:
      "The target as sent, up to its query; target and query are cut at 8,192 characters.",
  }),
  query: Type.Optional(
    Type.String({ description: "What was sent after the first question mark, if there was one." }),
  ),
  status: Type.Number(),
  user_agent: Type.Optional(
    Type.String({ description: "Cut at 1,024 characters; absent where none was sent." }),
  ),
  bytes: Type.Number({ description: "Bytes sent to the visitor." }),
  cache: Type.String({
    description: `What the cache had to do with it: ${cacheOutcomes.join(", ")}.`,
  }),
  verdict: Type.String({
    description: `What was decided about the visitor: ${toldKinds.join(", ")}, or none.`,
  }),
  reason: Type.String({
    description: `Why: ${toldReasons.join(", ")}; empty where nothing was decided.`,
  }),
  bot: Type.Optional(Type.String({ description: "The bot that the visitor is, or claims to be." })),
  backend_seconds: Type.Number({
    description: "How long the origin took; 0 where none was asked.",
  }),
  total_seconds: Type.Number({
    description: "From the first byte of the request to the last of the answer.",
  }),
};

const example = {
  request_id: "1795000000250000.2026-11-18.812",
  when: 1_795_000_000.25,
  deployment_site_id: 7,
  connection: 5_211,
  client_address: "192.0.2.7",
  method: "GET",
  authority: "www.example.com",
  path: "/search",
  query: "q=shoes",
  status: 403,
  user_agent: "Examplebot/1.0",
  bytes: 321,
  cache: "blocked",
  verdict: "block",
  reason: "bad-set",
  bot: "Examplebot",
  backend_seconds: 0,
  total_seconds: 0.000_4,
};

export const RequestEntry = open(entry, { title: "Request", examples: [example] });
export type RequestEntry = Static<typeof RequestEntry>;

export const RequestDetail = open(
  {
    ...entry,
    why: Type.String({
      description: "Why it was answered so, in a sentence or two, as far as the record tells.",
    }),
  },
  {
    title: "RequestDetail",
    examples: [
      {
        ...example,
        why: "blocked with 403: 192.0.2.7 is Examplebot's in a bad set of the domain. The cache was not asked.",
      },
    ],
  },
);
export type RequestDetail = Static<typeof RequestDetail>;
export const requestDetailShape = shape(RequestDetail);

export const Requests = open(
  {
    requests: Type.Array(RequestEntry, {
      description:
        "The newest first; with `follow`, in the order in which they arrived at central.",
    }),
    scanned_until: Type.Number({
      description:
        'How far back the question has looked, in seconds since the epoch: to the oldest record that it looked at, or, where nothing older is left, to `since` (0 without it). A question looks at a bounded number of records; where it ends before all was looked at, `Link` has `rel="next"`, even if nothing was found.',
    }),
    follow: Type.String({
      description:
        "The cursor with which `follow` gives what arrives from now on. All pages that the links of one question lead to show what had arrived when it was asked; what arrived since is what this cursor gives: each record once.",
    }),
  },
  {
    title: "Requests",
    examples: [{ requests: [example], scanned_until: 1_794_913_600.5, follow: "2026-11-18.90210" }],
  },
);
export type Requests = Static<typeof Requests>;
export const requestsShape = shape(Requests);

const time = { type: "string", examples: ["2026-11-22T00:00:00Z"] };
const timeText = "seconds since the epoch or an ISO 8601 time, inclusive.";
const text = (example_: string) => ({
  type: "string",
  minLength: 1,
  maxLength: requestFilterCharsMax,
  examples: [example_],
});
export const requestParameters: Readonly<Record<string, QueryParameter>> = {
  since: { schema: time, description: `Only what happened not before: ${timeText}` },
  until: { schema: time, description: `Only what happened not after: ${timeText}` },
  limit: {
    schema: {
      type: "integer",
      minimum: 1,
      maximum: requestsLimitMax,
      default: requestsLimitDefault,
    },
    description: "The most requests of one answer.",
  },
  status: {
    schema: { type: "string", pattern: "^[1-5](?:xx|XX|\\d\\d)$", examples: ["404", "5xx"] },
    description: "A status, or a class of them.",
  },
  method: { schema: text("GET"), description: "The method, as sent." },
  cache: {
    schema: { type: "string", enum: [...cacheOutcomes] },
    description: "What the cache had to do with it.",
  },
  verdict: {
    schema: { type: "string", enum: [...toldKinds, "none", "refused"] },
    description: "What was decided about the visitor. `refused`: `block` or `limit`.",
  },
  reason: {
    schema: { type: "string", enum: [...toldReasons] },
    description: "Why it was decided.",
  },
  bot: { schema: text("Examplebot"), description: "The name of the bot." },
  path: {
    schema: text("/search"),
    description: "What the target as sent contains, path and query; upper and lower case differ.",
  },
  path_is: {
    schema: text("/search"),
    description: "What the path as sent is, without its query.",
  },
  address: {
    schema: text("192.0.2.0/24"),
    description: "The visitor's address, or a range that it is in.",
  },
  id: {
    schema: text(example.request_id),
    description: "Only the request of this request_id, if the other conditions hold for it.",
  },
  after: {
    schema: { type: "string" },
    description:
      "The cursor in the header `Link` of the previous page, with the same conditions. The pages hold each record once.",
  },
  follow: {
    schema: { type: "string" },
    description:
      "The `follow` of an earlier answer: gives what arrived since, in the order of arrival, whenever it happened. Not together with `after`.",
  },
};
