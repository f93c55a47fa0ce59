// What a random application says of who may have its answers, in the fields of caching, and what it means by it. The meaning is known before the words are chosen, so
// nothing is parsed here: RFC 9111 §5.2, RFC 9213, and docs/caching.md for words in odd spellings.

import type { Chance } from "./leaks-random.ts";

type FieldLine = readonly [name: string, value: string];

export type Meaning = {
  /** `private` or `no-store`: nobody but the one who asked. */
  readonly isForbidden: boolean;
  /** Says of a lifetime, seconds; undefined for nothing. 0 with `no-cache`. */
  readonly lifetimeS: number | undefined;
  readonly isPublic: boolean;
  /** RFC 9111 §3.5. */
  readonly isForAuthorized: boolean;
  /** Must not be used stale, and a lifetime of 0 is not replaced by a rule. */
  readonly isBinding: boolean;
  /** Is to be asked about at each use. */
  readonly isAskedEachTime: boolean;
  readonly whileRevalidateS: number;
};
export type Said = { readonly fields: readonly FieldLine[]; readonly meaning: Meaning };

export const nothingMeant: Meaning = {
  isForbidden: false,
  lifetimeS: undefined,
  isPublic: false,
  isForAuthorized: false,
  isBinding: false,
  isAskedEachTime: false,
  whileRevalidateS: 0,
};

type Directive = { readonly name: string; readonly value?: number | string };

const forbidding: readonly Directive[] = [
  { name: "private" },
  { name: "no-store" },
  { name: "private", value: "set-cookie" },
];
const allowing = (chance: Chance): readonly Directive[] => [
  { name: "public" },
  { name: "max-age", value: chance.pick([0, 1, 60, 600]) },
  { name: "s-maxage", value: chance.pick([0, 60, 600]) },
  { name: "must-revalidate" },
  { name: "proxy-revalidate" },
  { name: "no-cache" },
  { name: "no-cache", value: "set-cookie" },
  { name: "stale-while-revalidate", value: 30 },
  { name: "stale-if-error", value: 60 },
  { name: "immutable" },
];

type Spelling =
  | "right"
  | "tight"
  | "capitals"
  | "lines"
  | "empty"
  | "quoted"
  | "semicolons"
  | "blanks";
/** In these a prohibition counts, and neither a permission nor a lifetime does (docs/caching.md). */
const slips: ReadonlySet<Spelling> = new Set<Spelling>(["semicolons", "blanks"]);

function textOf({ name, value }: Directive, spelling: Spelling, chance: Chance): string {
  const cased =
    spelling === "capitals"
      ? name.replaceAll(/[a-z]/g, (letter) => (chance.is(0.5) ? letter.toUpperCase() : letter))
      : name;
  if (value === undefined) return cased;
  return typeof value === "string" || spelling === "quoted"
    ? `${cased}="${value}"`
    : `${cased}=${value}`;
}

function linesOf(
  field: string,
  directives: readonly Directive[],
  spelling: Spelling,
  chance: Chance,
): readonly FieldLine[] {
  const texts = directives.map((one) => textOf(one, spelling, chance));
  switch (spelling) {
    case "lines":
      return texts.map((text): FieldLine => [field, text]);
    case "tight":
      return [[field, texts.join(",")]];
    case "capitals":
      return [[field.toUpperCase(), texts.join(", ")]];
    case "empty":
      return [[field, `, ${texts.join(" ,, ")},`]];
    case "semicolons":
      return [[field, texts.join("; ")]];
    case "blanks":
      return [[field, texts.join(" ")]];
    default:
      return [[field, texts.join(", ")]];
  }
}

/** Returns what directives mean, all of them understood. */
function meaningOf(directives: readonly Directive[], expiresS: number | undefined): Meaning {
  const has = (...names: readonly string[]): boolean =>
    directives.some(({ name }) => names.includes(name));
  const least = (wanted: string): number | undefined => {
    const values = directives.flatMap(({ name, value }) =>
      name === wanted && typeof value === "number" ? [value] : [],
    );
    return values.length === 0 ? undefined : Math.min(...values);
  };
  const isAskedEachTime = has("no-cache");
  return {
    isForbidden: has("private", "no-store"),
    lifetimeS: isAskedEachTime ? 0 : (least("s-maxage") ?? least("max-age") ?? expiresS),
    isPublic: has("public"),
    isForAuthorized: has("public", "s-maxage", "must-revalidate"),
    isBinding: has("must-revalidate", "proxy-revalidate", "s-maxage", "no-cache"),
    isAskedEachTime,
    whileRevalidateS: least("stale-while-revalidate") ?? 0,
  };
}

/** The same of a list in which only prohibitions count. */
function meaningOfSlip(directives: readonly Directive[], expiresS: number | undefined): Meaning {
  const { isForbidden, isAskedEachTime } = meaningOf(directives, undefined);
  // `s-maxage` binds too, but is a lifetime.
  const isBinding = meaningOf(
    directives.filter(({ name }) => name !== "s-maxage"),
    undefined,
  ).isBinding;
  const lifetimeS = isAskedEachTime || directives.length > 1 ? undefined : expiresS;
  return { ...nothingMeant, isForbidden, isAskedEachTime, isBinding, lifetimeS };
}

function expiresOf(chance: Chance): {
  readonly lines: readonly FieldLine[];
  readonly expiresS: number | undefined;
} {
  const kind = chance.below(12);
  if (kind === 0)
    return { lines: [["Expires", new Date(Date.now() + 600_000).toUTCString()]], expiresS: 600 };
  if (kind === 1) return { lines: [["Expires", "0"]], expiresS: 0 };
  if (kind === 2) return { lines: [["Expires", "Wed, 11 Jan 1984 05:00:00 GMT"]], expiresS: 0 };
  return { lines: [], expiresS: undefined };
}

function targetedWords(directives: readonly Directive[], chance: Chance): Said {
  // A structured dictionary has each key once, in small letters (RFC 9651 §3.2).
  const keyed = [
    ...new Map(directives.map((one): [string, Directive] => [one.name, one])).values(),
  ];
  const kind = chance.below(3);
  if (
    kind === 0 &&
    keyed.length > 1 &&
    keyed.some(({ name }) => name === "private" || name === "no-store")
  )
    // `max-age=60; private` is one member with a parameter, and a slip.
    return {
      fields: linesOf("CDN-Cache-Control", keyed, "semicolons", chance),
      meaning: { ...nothingMeant, isForbidden: true },
    };
  return {
    fields: linesOf("CDN-Cache-Control", keyed, kind === 1 ? "tight" : "right", chance),
    meaning: meaningOf(keyed, undefined),
  };
}

/** Says that an answer is for one visitor alone, in one of many spellings. */
export function forbidInWords(chance: Chance): Said {
  const directives = [
    chance.pick([{ name: "private" }, { name: "no-store" }, ...forbidding]),
    ...chance.some(allowing(chance), 0.2),
  ];
  const spelling = chance.pick<Spelling>([
    "right",
    "tight",
    "capitals",
    "lines",
    "empty",
    "quoted",
    "semicolons",
    "blanks",
  ]);
  const mixed = chance.is(0.5) ? directives : directives.toReversed();
  const { lines } = expiresOf(chance);
  if (chance.is(0.1)) {
    const { fields, meaning } = targetedWords(mixed, chance);
    return { fields: [...fields, ...lines, ["Cache-Control", "public, max-age=600"]], meaning };
  }
  if (chance.is(0.1)) {
    const fields = [
      ...linesOf("Surrogate-Control", mixed, spelling, chance),
      ["Cache-Control", "max-age=600"] as const,
    ];
    return { fields, meaning: { ...nothingMeant, isForbidden: true } };
  }
  const meaning =
    slips.has(spelling) && mixed.length > 1
      ? meaningOfSlip(mixed, undefined)
      : meaningOf(mixed, undefined);
  return { fields: [...linesOf("Cache-Control", mixed, spelling, chance), ...lines], meaning };
}

/** Says anything that does not forbid: lifetimes, permissions, and nothing at all. */
export function allowInWords(chance: Chance): Said {
  const lasting: readonly Directive[] = chance.is(0.6)
    ? [{ name: chance.pick(["max-age", "max-age", "s-maxage"]), value: 600 }]
    : [];
  const directives = [...lasting, ...chance.some(allowing(chance), chance.pick([0, 0.1, 0.2]))];
  const spelling = chance.pick<Spelling>([
    "right",
    "right",
    "tight",
    "capitals",
    "lines",
    "empty",
    "quoted",
    "semicolons",
    "blanks",
  ]);
  const { lines, expiresS } = expiresOf(chance);
  if (directives.length === 0) {
    if (chance.is(0.1))
      return {
        fields: [["Pragma", "no-cache"], ...lines],
        meaning: {
          ...nothingMeant,
          lifetimeS: expiresS,
          isBinding: true,
          isAskedEachTime: expiresS === undefined,
        },
      };
    return { fields: lines, meaning: { ...nothingMeant, lifetimeS: expiresS } };
  }
  if (chance.is(0.1)) {
    const { fields, meaning } = targetedWords(directives, chance);
    // What is said to other caches does not count then.
    const other = chance.pick(["private", "no-store", "max-age=5", "public"]);
    return { fields: [...fields, ["Cache-Control", other], ...lines], meaning };
  }
  const meaning =
    slips.has(spelling) && directives.length > 1
      ? meaningOfSlip(directives, expiresS)
      : meaningOf(directives, expiresS);
  return { fields: [...linesOf("Cache-Control", directives, spelling, chance), ...lines], meaning };
}
