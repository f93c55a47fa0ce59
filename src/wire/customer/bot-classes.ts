// What a policy says of classes of unknown bots, under the keys of the customer API; the columns of the store have the same names.

import { botClassWords } from "../../core/serving/bot-class-words.ts";
import { botClasses, type BotClass, type ClassAccess } from "../../core/serving/verdict.ts";

/** The key of an access object that says another thing of the unknown bots of a class. */
export const botClassKeys = {
  crawler: botClassWords.crawler.key,
  feed: botClassWords.feed.key,
  library: botClassWords.library.key,
} as const;

/** What a policy comes to: what holds for unknown bots, and the classes for which the contrary holds. Those are never all. */
export type AccessInForce = {
  readonly access: boolean;
  readonly otherwise: readonly BotClass[];
};

/** Every bot has a class: where the contrary is said of all of them, nothing is left of what is said of other bots. */
export function accessInForce(others: boolean, classes: ClassAccess): AccessInForce {
  const otherwise = botClasses.filter((botClass) => classes[botClass] === !others);
  return otherwise.length === botClasses.length
    ? { access: !others, otherwise: [] }
    : { access: others, otherwise };
}

/** Lists classes in words. One that has an "and" of its own stands apart: "feed readers, and libraries and tools". */
export function classListText(classes: readonly BotClass[]): string {
  const words = classes.map((botClass) => botClassWords[botClass].many);
  const separator = words.length > 2 || words.some((word) => word.includes(" and ")) ? ", " : " ";
  return words
    .map((word, at) => (at > 0 && at === words.length - 1 ? `and ${word}` : word))
    .join(separator);
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
