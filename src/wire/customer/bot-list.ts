// Lists of a bot's addresses at their real size: read by the page, replaced as a whole, changed in bulk.

import { Type, type Static } from "typebox";
import { BotSetName } from "../journal.ts";
import { Count } from "../parts.ts";
import { MarkDeployment } from "./bot.ts";
import type { QueryParameter } from "./operation.ts";
import { body, open, shape } from "./shape.ts";

/** The most addresses and ranges of one bot. */
export const botListMax = 1_000_000;
/** The most of one change, added or removed. */
export const botChangeMax = 20_000;
export const botPageMax = 10_000;
const botPageDefault = 1_000;
/** Longer than any address with its prefix. */
const rangeCharsMax = 60;

const place = {
  list: BotSetName,
  bot: Type.String(),
  domain: Type.String({ description: "The main domain or the sub-domain to which it applies." }),
  version: Type.Integer({
    minimum: 0,
    description:
      "The version of the whole list of the domain, of all its bots. Each change is one.",
  }),
  count: Type.Integer({ minimum: 0, description: "How many addresses and ranges the bot holds." }),
};
const examplePlace = {
  list: "bad" as const,
  bot: "Scraper",
  domain: "www.example.com",
  version: 12,
  count: 2,
};

export const BotAddresses = open(
  { ...place, ip_addresses: Type.Array(Type.String()) },
  {
    title: "BotAddresses",
    description:
      'A page of them in the order of their texts. `Link` with `rel="next"` leads to the next one. `ETag` is that of all that the bot holds.',
    examples: [{ ...examplePlace, ip_addresses: ["192.0.2.7", "198.51.100.0/24"] }],
  },
);
export type BotAddresses = Static<typeof BotAddresses>;
export const botAddressesShape = shape(BotAddresses);

const samples = Type.Array(Type.String(), { description: "At most 20 of them." });

export const BotListChange = open(
  {
    ...place,
    added: Count,
    removed: Count,
    samples: Type.Optional(open({ added: samples, removed: samples })),
    absent: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          "After a change in bulk: how many were to be removed that the bot did not hold.",
      }),
    ),
    dry_run: Type.Optional(
      Type.Boolean({ description: "True: nothing was changed; it says what would be." }),
    ),
    refusal: Type.Optional(
      Type.String({ description: "In a dry run: why the list itself would be refused." }),
    ),
    deployments: Type.Optional(
      Type.Array(MarkDeployment, {
        description:
          "With `?wait=`: what the deployments' agents have proved so far. `applied`: every request is judged by the set with this change, or by a later one.",
      }),
    ),
  },
  {
    title: "BotListChange",
    description: "What a change did. `ETag` is that of what the bot holds now.",
    examples: [
      {
        ...examplePlace,
        added: 1,
        removed: 3,
        samples: {
          added: ["198.51.100.0/24"],
          removed: ["203.0.113.1", "203.0.113.2", "203.0.113.3"],
        },
      },
    ],
  },
);
export type BotListChange = Static<typeof BotListChange>;
export const botListChangeShape = shape(BotListChange);

const ranges = Type.Optional(
  Type.Array(Type.String({ minLength: 1, maxLength: rangeCharsMax }), { maxItems: botChangeMax }),
);
export const botListEdit = body({ add: ranges, remove: ranges }, [], {
  examples: [{ add: ["192.0.2.7", "198.51.100.0/24"], remove: ["203.0.113.1"] }],
});

const domain: QueryParameter = {
  schema: { type: "string", examples: ["www.example.com"] },
  description: "A main domain, which means it and its sub-domains, or one sub-domain.",
  required: true,
};

export const botPageParameters: Readonly<Record<string, QueryParameter>> = {
  domain,
  limit: {
    schema: { type: "integer", minimum: 1, maximum: botPageMax, default: botPageDefault },
    description: "The most addresses of a page.",
  },
  after: {
    schema: { type: "string", examples: ["192.0.2.7"] },
    description: "The last address of the page before.",
  },
};
export const botPageLimit = (text: string | null): number | undefined => {
  if (text === null) return botPageDefault;
  const limit = Number(text);
  return /^\d{1,5}$/.test(text) && limit >= 1 && limit <= botPageMax ? limit : undefined;
};

const flag = { type: "string", enum: ["true", "false"], default: "false" };
export const botReplaceParameters: Readonly<Record<string, QueryParameter>> = {
  domain,
  dry_run: {
    schema: flag,
    description: "`true`: nothing is changed; the answer says what would be.",
  },
  allow_shrink: {
    schema: flag,
    description:
      "`true`: the list may leave a bot of a hundred addresses or more with less than half of them, or with none. Otherwise that is refused (409), because a list that broke off looks the same.",
  },
};
export const botEditParameters: Readonly<Record<string, QueryParameter>> = { domain };

/** The list itself: text, an address or CIDR range a line, or JSON. */
export const botListText = {
  type: "string",
  description:
    "An address or CIDR range a line; `#` and `;` begin a comment. Every line is looked at, and the refusal names each that is none.",
  examples: ["192.0.2.7\n198.51.100.0/24 # the scrapers of May\n"],
};
export const botListJson = {
  type: "array",
  maxItems: botListMax,
  items: { type: "string" },
  examples: [["192.0.2.7", "198.51.100.0/24"]],
};
