// What a policy says of classes of unknown bots, under the keys of the customer API; the columns of the store have the same names.

import { botClassWords } from "../../core/serving/bot-class-words.ts";
import { botClasses, type BotClass, type ClassAccess } from "../../core/serving/verdict.ts";

/** The key of an access object that says another thing of the unknown bots of a class. */
export const botClassKeys = {
  crawler: botClassWords.crawler.key,
  feed: botClassWords.feed.key,
  library: botClassWords.library.key,
} as const;

/** Returns the classes of which another thing is said than of other bots. */
export function classesOtherwise(others: boolean, classes: ClassAccess): readonly BotClass[] {
  return botClasses.filter((botClass) => classes[botClass] === !others);
}

export type BotClassKey = (typeof botClassKeys)[BotClass];

/** Returns an object with the key of each class. */
export function ofClasses<V>(value: (botClass: BotClass) => V): Readonly<Record<BotClassKey, V>> {
  const rows = botClasses.map((botClass) => [botClassKeys[botClass], value(botClass)] as const);
  return Object.fromEntries(rows) as Record<BotClassKey, V>; // A row for each class.
}

/** Reads what is said of classes from an object with their keys; null and absent say nothing. */
export function classAccessOf<V>(
  said: { readonly [Key in BotClassKey]?: V | null },
  read: (value: V) => boolean,
): ClassAccess {
  return Object.fromEntries(
    botClasses.flatMap((botClass) => {
      const value = said[botClassKeys[botClass]];
      return value === undefined || value === null ? [] : [[botClass, read(value)]];
    }),
  );
}

/** Writes what is said of classes under their keys; those of which nothing is said are left out. */
export function classAccessKeys(access: ClassAccess): { readonly [Key in BotClassKey]?: boolean } {
  return Object.fromEntries(
    botClasses.flatMap((botClass) => {
      const value = access[botClass];
      return value === undefined ? [] : [[botClassKeys[botClass], value]];
    }),
  );
}
