// Where the addresses of a bot are fetched from, on a schedule.

import { Type, type Static } from "typebox";
import { fetchIntervalS } from "../../core/list-source.ts";
import { BotSetName } from "../journal.ts";
import { Count, Timestamp } from "../parts.ts";
import type { QueryParameter } from "./operation.ts";
import { body, Id, open, shape } from "./shape.ts";

/** The most sources of a customer. */
export const botSourcesMax = 200;

const states = ["waiting", "fetching", "good", "failing", "stale"] as const;
const outcomes = ["changed", "unchanged", "failed", "refused"] as const;

const exampleUrl = "https://lists.example.net/scrapers.txt";

export const BotSource = open(
  {
    id: Id,
    list: BotSetName,
    bot: Type.String(),
    domain: Type.String({ description: "The main domain or the sub-domain to which it applies." }),
    url: Type.String(),
    published: Type.Boolean({
      description:
        "Whether it is the URL at which the crawler's owner publishes; it moves with central's release.",
    }),
    interval_s: Type.Integer({ description: "How often it is fetched, in seconds." }),
    state: Type.Unsafe<(typeof states)[number]>({
      enum: states,
      description:
        "`waiting`: it was not fetched yet. `fetching`: it is being fetched now. `failing`: the last attempt gave no list that is in force; what the bot held before is. `stale`: that has been so for three intervals, and for six hours at least; an alert says so.",
    }),
    outcome: Type.Union(
      [Type.Unsafe<(typeof outcomes)[number]>({ type: "string", enum: outcomes }), Type.Null()],
      {
        description:
          "How the last attempt ended. `failed`: the list did not come. `refused`: it came, and a line is none, or it is half as long as before, or too long.",
      },
    ),
    reason: Type.Union([Type.String(), Type.Null()], {
      description: "Why the last attempt failed or was refused.",
    }),
    failures: Type.Integer({
      minimum: 0,
      description: "Attempts in a row that failed or were refused.",
    }),
    count: Count,
    when_created: Timestamp,
    when_tried: Type.Union([Timestamp, Type.Null()]),
    when_fetched: Type.Union([Timestamp, Type.Null()], {
      description: "When a list was last taken in, or the server said that it is as before.",
    }),
    when_next: Timestamp,
  },
  {
    title: "BotSource",
    examples: [
      {
        id: 4,
        list: "bad" as const,
        bot: "Scraper",
        domain: "www.example.com",
        url: exampleUrl,
        published: false,
        interval_s: 86_400,
        state: "good" as const,
        outcome: "changed" as const,
        reason: null,
        failures: 0,
        count: 48_211,
        when_created: "2026-11-29T08:00:00.000Z",
        when_tried: "2026-11-29T08:00:01.000Z",
        when_fetched: "2026-11-29T08:00:01.000Z",
        when_next: "2026-11-30T08:03:12.000Z",
      },
    ],
  },
);
export type BotSource = Static<typeof BotSource>;
export const botSourceShape = shape(BotSource);

export const botSourceWrite = body(
  {
    url: Type.Optional(
      Type.String({
        description:
          "An `http` or `https` URL. Lists are lines of text, a JSON array of texts, or the object with `prefixes` in which search engines publish theirs.",
      }),
    ),
    published: Type.Optional(
      Type.Boolean({
        description:
          "`true` instead of a URL: the list that the crawler's owner publishes. For the VIP bots of `GET /bots/published/`.",
      }),
    ),
    interval_s: Type.Optional(
      Type.Integer({
        minimum: fetchIntervalS.least,
        maximum: fetchIntervalS.most,
        default: fetchIntervalS.usual,
        description: "How often it is fetched, in seconds.",
      }),
    ),
  },
  [
    "id",
    "list",
    "bot",
    "domain",
    "state",
    "outcome",
    "reason",
    "failures",
    "count",
    "when_created",
    "when_tried",
    "when_fetched",
    "when_next",
  ],
  {
    description: "A URL, or `published`, which comes before it.",
    examples: [{ url: exampleUrl }, { url: exampleUrl, interval_s: 3_600 }, { published: true }],
  },
);

export const PublishedBot = open(
  {
    bot: Type.String(),
    covers: Type.Array(Type.String(), {
      description: "Further names of user agents that come from the same addresses.",
    }),
    url: Type.String(),
  },
  {
    title: "PublishedBot",
    examples: [
      {
        bot: "Examplebot",
        covers: [],
        url: "https://crawler.example.com/addresses.json",
      },
    ],
  },
);
export type PublishedBot = Static<typeof PublishedBot>;
export const publishedBotsShape = shape(
  Type.Array(PublishedBot, {
    title: "PublishedBots",
    examples: [
      [{ bot: "Examplebot", covers: [], url: "https://crawler.example.com/addresses.json" }],
    ],
  }),
);

const domain: QueryParameter = {
  schema: { type: "string", examples: ["www.example.com"] },
  description: "A main domain, which means it and its sub-domains, or one sub-domain.",
  required: true,
};
export const botSourceParameters: Readonly<Record<string, QueryParameter>> = { domain };
export const botSourceFetchParameters: Readonly<Record<string, QueryParameter>> = {
  domain,
  allow_shrink: {
    schema: { type: "string", enum: ["true", "false"], default: "false" },
    description:
      "`true`: the list that comes next may leave a bot of a hundred addresses or more with less than half of them, or with none.",
  },
};
