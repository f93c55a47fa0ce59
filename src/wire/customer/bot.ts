// Bad bots and VIP bots: marks, checks and lists. They are the same for both except for the name of the
// answer's flag.

import { Type, type Static } from "typebox";
import { BotSetName } from "../journal.ts";
import { Count, Timestamp } from "../parts.ts";
import { ProofProgress } from "./proof.ts";
import type { QueryParameter } from "./operation.ts";
import { body, BooleanLike, DomainText, Id, nameText, open, shape } from "./shape.ts";

const BotName = nameText(255);

export const botMark = body(
  {
    attach_to_bot: BotName,
    attach_to_domain: DomainText,
    is_custom_ip_range: Type.Optional(BooleanLike),
  },
  [],
  { examples: [{ attach_to_bot: "Examplebot", attach_to_domain: "www.example.com" }] },
);
export const botRemove = body(
  {
    remove_from_bot: BotName,
    remove_from_domain: DomainText,
    is_custom_ip_range: Type.Optional(BooleanLike),
  },
  [],
  { examples: [{ remove_from_bot: "Examplebot", remove_from_domain: "www.example.com" }] },
);

const told = {
  took_ms: Type.Union([Count, Type.Null()], {
    description:
      "The time at the agent until every request was durably judged by it. Null until it has reported.",
  }),
  error: Type.Optional(Type.String()),
};

/**
 * What one deployment's agents proved of the set as it stood after the mark or removal, or after a later
 * change.
 */
export const MarkDeployment = open(
  {
    deployment_site_id: Id,
    state: Type.Union([...ProofProgress.anyOf, Type.Literal("absent")], {
      description: "`absent`: no agent ever connected.",
    }),
    ...told,
    /** When a pending deployment was last seen. */
    last_seen: Type.Optional(Timestamp),
    /** The instances seen within a day, and in any case the one seen last. */
    instances: Type.Array(
      open({
        instance_id: Type.String(),
        state: ProofProgress,
        ...told,
        last_seen: Timestamp,
      }),
    ),
  },
  { title: "MarkDeployment" },
);
export type MarkDeployment = Static<typeof MarkDeployment>;

/** Parts of the answer to a mark or a removal. */
const answered = {
  also_in: Type.Optional(
    Type.Array(
      open({
        list: BotSetName,
        domain: Type.String(),
        bot: Type.String(),
        ip_address_or_range: Type.String(),
      }),
      {
        description:
          "After a mark: where addresses of it are in the other list of the domain too, at most 20 of them. The VIP list decides.",
      },
    ),
  ),
  deployments: Type.Optional(
    Type.Array(MarkDeployment, {
      description:
        "With `?wait=`: what the deployments' agents have proved so far. `applied`: every request is judged by the set with this change, or by a later one.",
    }),
  ),
};

export const returnParameter: QueryParameter = {
  schema: { type: "string", enum: ["summary"] },
  description:
    "`summary`: the answer has the number of addresses and ranges that the bot holds, in place of all of them.",
};

export const BotRecord = open(
  {
    id: Id,
    name: Type.String(),
    domain: Type.String({
      description:
        "The main domain (with its sub-domains), or the one sub-domain, to which it applies.",
    }),
    ip_addresses: Type.Array(Type.String()),
    ip_address_count: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          "Of a bot that holds more than 65,536 addresses and ranges, how many. `ip_addresses` are 1,000 of them then; `GET /bots/{list}/{bot}/addresses/` reads all.",
      }),
    ),
    stands_for: Type.Optional(
      Type.Array(Type.String(), {
        description:
          "In lists, if the name is a former name of bots: what those bots are called now. The record applies to them.",
      }),
    ),
    ...answered,
  },
  {
    title: "Bot",
    examples: [
      {
        id: 51,
        name: "Examplebot",
        domain: "www.example.com",
        ip_addresses: ["192.0.2.7", "198.51.100.0/24"],
      },
    ],
  },
);
export type BotRecord = Static<typeof BotRecord>;
export const botRecordShape = shape(BotRecord);

/** A mark or a removal, answered with `?return=summary`. */
export const BotSummary = open(
  {
    id: Id,
    name: Type.String(),
    domain: Type.String(),
    ip_address_count: Count,
    ...answered,
  },
  {
    title: "BotSummary",
    examples: [{ id: 51, name: "Examplebot", domain: "www.example.com", ip_address_count: 2 }],
  },
);
export type BotSummary = Static<typeof BotSummary>;
export const botSummaryShape = shape(BotSummary);

export const markAnswerShape = shape(Type.Union([BotRecord, BotSummary]));

const checked = {
  ip_address_or_range: Type.String({ description: "A range is written with a slash." }),
  domains: Type.Array(Type.String(), { description: "The domains whose list has all of it." }),
};
const found = { ip_address_or_range: "192.0.2.0/24", domains: ["www.example.com"] };
export const badBotCheckShape = shape(
  open(
    { is_bad_bot: Type.Boolean(), ...checked },
    { title: "BadBotCheck", examples: [{ is_bad_bot: true, ...found }] },
  ),
);
export const vipBotCheckShape = shape(
  open(
    { is_vip_bot: Type.Boolean(), ...checked },
    { title: "VipBotCheck", examples: [{ is_vip_bot: true, ...found }] },
  ),
);
