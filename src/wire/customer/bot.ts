// Bad bots and VIP bots: marks, checks and lists, the same for both but for the name of the answer's flag.

import { Type, type Static } from "typebox";
import { BotSetName } from "../journal.ts";
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

export const BotRecord = open(
  {
    id: Id,
    name: Type.String(),
    domain: Type.String({
      description: "Main domain (with its sub-domains) or the one sub-domain that it holds for.",
    }),
    ip_addresses: Type.Array(Type.String()),
    stands_for: Type.Optional(
      Type.Array(Type.String(), {
        description:
          "In lists, where the name is an older one that agents claimed: what those bots are called now. The record holds for them.",
      }),
    ),
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
            "After a mark: where addresses of it stand in the other list of the domain too. VIP decides. At most 20.",
        },
      ),
    ),
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

const checked = {
  ip_address_or_range: Type.String({ description: "Ranges are echoed with a slash." }),
  domains: Type.Array(Type.String(), { description: "Those whose list holds all of it." }),
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
