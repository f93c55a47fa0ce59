// The items of a clear by what people know, as central tells them to agents: beside the journal's entry
// (`journal.ts`) and in a question (`ask.ts`). What is absent was not named.

import { Type, type Static } from "typebox";
import { tagBytesMax } from "../core/http/cache-tags.ts";
import { clearItemsMax } from "../core/patterns/clear-items.ts";
import { patternCharsMax, patternsMax } from "../core/patterns/pattern-budget.ts";
import { closed } from "./validate.ts";
import { HostText } from "./parts.ts";

/** Room for an item of 4,096 characters, which may begin with a host. */
const pathCharsMax = 4_200;

/** A path, perhaps with a query. `host` null: every host of the domain. */
const NamedPath = closed({
  host: Type.Union([HostText, Type.Null()]),
  path: Type.String({ minLength: 1, maxLength: pathCharsMax }),
});

const listOf = <S extends ReturnType<typeof Type.String> | typeof NamedPath>(
  item: S,
  max: number,
) => Type.Optional(Type.Array(item, { minItems: 1, maxItems: max }));

export const ClearExtension = closed({
  patterns: listOf(Type.String({ maxLength: patternCharsMax }), patternsMax),
  urls: listOf(NamedPath, clearItemsMax),
  prefixes: listOf(NamedPath, clearItemsMax),
  hosts: listOf(HostText, clearItemsMax),
  tags: listOf(Type.String({ minLength: 1, maxLength: tagBytesMax }), clearItemsMax),
  /** What matches becomes stale and is kept. */
  soft: Type.Optional(Type.Literal(true)),
});
export type ClearExtension = Static<typeof ClearExtension>;
