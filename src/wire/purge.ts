// What an agent tells central of purge requests that it has carried out: `POST /agent-api/v1/purges`. Central
// writes a clear of the domain for all its agents and answers 204 when that is durable, within two seconds. A
// domain that is not linked to the site is answered 409. Sent twice, it is cleared twice.

import { Type, type Static } from "typebox";
import { tagBytesMax } from "../core/http/cache-tags.ts";
import { clearItemsMax } from "../core/patterns/clear-items.ts";
import { patternCharsMax, patternsMax } from "../core/patterns/pattern-budget.ts";
import { HostText, InstanceId } from "./parts.ts";
import { closed, decoder } from "./validate.ts";

/** Room for an item of 4,096 characters, which may begin with a scheme and a host. */
const textCharsMax = 4_400;

const texts = (maxLength: number, maxItems: number) =>
  Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength }), { minItems: 1, maxItems }));

export const PurgeMessage = closed({
  instance_id: InstanceId,
  /** The main domain. */
  domain: HostText,
  /** Null: with its sub-domains. */
  host: Type.Union([HostText, Type.Null()]),
  items: closed({
    patterns: texts(patternCharsMax, patternsMax),
    urls: texts(textCharsMax, clearItemsMax),
    prefixes: texts(textCharsMax, clearItemsMax),
    hosts: texts(253, clearItemsMax),
    tags: texts(tagBytesMax, clearItemsMax),
    everything: Type.Optional(Type.Literal(true)),
    soft: Type.Optional(Type.Literal(true)),
  }),
});
export type PurgeMessage = Static<typeof PurgeMessage>;
export const decodePurgeMessage = decoder(PurgeMessage);
