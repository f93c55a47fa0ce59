// Bad bots and VIP bots: marks, checks and lists, the same for both but for the name of the answer's flag.

import { Type, type Static } from "typebox";
import { BotSetName } from "../journal.ts";
import { body, BooleanLike, DomainText, Id, nameText, open, shape } from "./shape.ts";

const BotName = nameText(255);

export const botMark = body({
  attach_to_bot: BotName,
  attach_to_domain: DomainText,
  is_custom_ip_range: Type.Optional(BooleanLike),
});
export const botRemove = body({
  remove_from_bot: BotName,
  remove_from_domain: DomainText,
  is_custom_ip_range: Type.Optional(BooleanLike),
});

export const BotRecord = open({
  id: Id,
  name: Type.String(),
  /** Main domain (with its sub-domains) or the one sub-domain that the mark holds for. */
  domain: Type.String(),
  ip_addresses: Type.Array(Type.String()),
  /** After a mark: where addresses of it stand in the other list of the domain too. VIP decides. At most 20. */
  also_in: Type.Optional(
    Type.Array(
      open({
        list: BotSetName,
        domain: Type.String(),
        bot: Type.String(),
        ip_address_or_range: Type.String(),
      }),
    ),
  ),
});
export type BotRecord = Static<typeof BotRecord>;
export const botRecordShape = shape(BotRecord);

const checked = { ip_address_or_range: Type.String(), domains: Type.Array(Type.String()) };
export const badBotCheckShape = shape(open({ is_bad_bot: Type.Boolean(), ...checked }));
export const vipBotCheckShape = shape(open({ is_vip_bot: Type.Boolean(), ...checked }));
