// The oracle of the leak hunt: whether an answer that the origin made for one request may answer another. Written from RFC 9111 and docs/caching.md; it imports nothing of
// the programs, and it knows what each answer was made of.

import type { Made, AskedBy } from "./leaks-records.ts";
import {
  choose,
  chooseTyped,
  cookieMeanings,
  isForNobody,
  queryUnder,
  ruleFor,
  variedBy,
  type Edition,
  type LeakRule,
} from "./leaks-rules.ts";
import type { Meaning } from "./leaks-words.ts";

/** Fields that are told to an origin only where its answer is for one visitor (docs/caching.md, What your application is asked with). */
export const untoldWhereShared: readonly string[] = [
  "x-original-url",
  "x-http-method-override",
  "x-forwarded-scheme",
  "x-middleware-subrequest",
];

/** A request and the rules in force when it was answered. */
export type Under = {
  readonly asked: AskedBy;
  readonly edition: Edition;
  /** When the answer was there, by the wall clock. */
  readonly wallMs: number;
};
export type Source = {
  readonly made: Made;
  readonly edition: Edition;
  /** In place of a 304 that says nothing of it: of what it confirmed, undefined where that is not known. */
  readonly meaning: Meaning | undefined;
  /** What holds since a later answer confirmed this one; left out where none did. */
  readonly inForce?: Meaning | undefined;
  /** Whether the origin, asked with the credentials of the very visitor who got it, said that this is the answer (304). */
  readonly isConfirmed?: boolean;
};

/** What an answer said of itself, and what a confirmation says of it since. A confirmation leaves in force what it does not say again. */
type Words = readonly (Meaning | undefined)[];

/** Clocks and ways take so long at most. */
const pauseSlackMs = 250;

/** Returns why the answer must not reach this other request, or undefined if it may. */
export function whyNot(
  { made, edition, meaning = made.meaning, inForce = meaning, isConfirmed = false }: Source,
  under: Under,
): string | undefined {
  const { asked } = under;
  if (made.method !== "GET" && made.method !== "HEAD") return `an answer to ${made.method}`;
  if (asked.method !== "GET" && asked.method !== "HEAD") return `an answer for ${asked.method}`;
  if (made.domain !== asked.domain || made.path !== asked.path || made.scheme !== asked.scheme)
    return "another URL";
  if (isAboutPart(made)) return "an answer about a part";
  if (isPaused(edition, made.askedWallMs) || isPaused(under.edition, under.wallMs))
    return "the cache is paused";
  const storing = ruleFor(edition, made, made.type);
  const serving = ruleFor(under.edition, asked, made.type);
  if (storing.bypass === true || serving.bypass === true) return "a rule says bypass";
  if (hasOtherRule(under, made)) return "fields choose another rule";
  if (queryTellsApart(serving, made, asked)) return "another query";
  return (
    notByWords(made, storing, meaning) ??
    notToldForAll(made, storing, meaning) ??
    (isConfirmed ? undefined : notByCredentials(asked, [meaning, inForce])) ??
    notByCookies(made, asked, serving, [meaning, inForce]) ??
    notByVary(made, asked, storing, serving)
  );
}

/** A part, or the refusal of one: any error in answer to a request for a part. */
const isAboutPart = ({ status, fields }: Made): boolean =>
  status === 206 || status === 416 || (status >= 400 && fields.has("range"));

const isPaused = ({ pausedUntilMs }: Edition, wallMs: number): boolean =>
  wallMs < pausedUntilMs - pauseSlackMs;

function hasOtherRule({ asked, edition }: Under, made: Made): boolean {
  const [place, other] = [choose(edition, asked), choose(edition, made)];
  return (
    place !== other ||
    chooseTyped(edition, asked, place, made.type) !== chooseTyped(edition, made, other, made.type)
  );
}

/** Credentials keep the cache out, but for what says that it is for those who have some (RFC 9111 §3.5). */
function notByCredentials({ fields }: AskedBy, said: Words): string | undefined {
  const isKeptOut = said.every((meaning) => meaning?.isForAuthorized === false);
  return fields.has("authorization") && isKeptOut ? "the visitor has credentials" : undefined;
}

/** An answer was made for the whole query that its origin saw: what the rule left out where it was stored does not matter. */
function queryTellsApart(rule: LeakRule, made: Made, asked: AskedBy): boolean {
  return (
    made.hasLoneMark ||
    asked.hasLoneMark ||
    queryUnder(rule, made.query) !== queryUnder(rule, asked.query)
  );
}

function notByWords(
  { fields, setsCookies }: Made,
  storing: LeakRule,
  meaning: Meaning | undefined,
): string | undefined {
  if (/\bno-store\b/.test(fields.get("cache-control") ?? "")) return "its visitor said no-store";
  const isStripped =
    storing.ignore_set_cookie === true &&
    !setsCookies.some(
      (name) =>
        cookieMeanings({ path: "", cookies: { vary: namesOf(storing.cookies?.vary) } }, [
          { name, value: "" },
        ])[0] === "vary",
    );
  if (setsCookies.length > 0 && !isStripped) return "it sets a cookie";
  if (meaning === undefined) return undefined;
  if (meaning.isForbidden) return "private or no-store";
  return fields.has("authorization") && !meaning.isForAuthorized
    ? "made for Authorization"
    : undefined;
}

/** Whatever the value that an item names: a cookie that is set may have any. */
const namesOf = (items: readonly string[] = []): readonly string[] =>
  items.map((item) => item.split("=", 1)[0] ?? "");

/** What the application was told must be what it may be told for all. */
function notToldForAll(
  { fields, cookies, vary }: Made,
  storing: LeakRule,
  meaning: Meaning | undefined,
): string | undefined {
  const told = untoldWhereShared.find((name) => fields.has(name));
  if (told !== undefined) return `it was told ${told}`;
  const meanings = cookieMeanings(storing, cookies);
  if (meanings.includes("bypass")) return "it was told a cookie that bypasses";
  if (isForNobody(storing))
    return meanings.every((one) => one === "vary")
      ? undefined
      : "it was told a cookie that the rule does not vary by";
  if (!meanings.includes("own"))
    return meanings.length === 0 ? undefined : "it was told an ignored cookie";
  return saysForAll(meaning, vary)
    ? undefined
    : "made for a cookie, and nothing says that it is for all";
}

/** RFC 9111 §3, for requests with cookies: a lifetime of the application's own, `public`, or `Vary: Cookie`, which is compared below. */
function saysForAll(meaning: Meaning | undefined, vary: Made["vary"]): boolean {
  if (meaning === undefined) return true;
  return (meaning.lifetimeS ?? 0) > 0 || meaning.isPublic || vary?.includes("cookie") === true;
}

function notByCookies(
  made: Made,
  asked: AskedBy,
  serving: LeakRule,
  said: Words,
): string | undefined {
  const meanings = cookieMeanings(serving, asked.cookies);
  if (meanings.includes("bypass")) return "the visitor has a cookie that bypasses";
  if (!isForNobody(serving)) {
    const isForAll =
      !meanings.includes("own") || said.some((meaning) => saysForAll(meaning, made.vary));
    return isForAll ? undefined : "the visitor has a cookie of his own";
  }
  if (meanings.includes("own") || hasTwoValues(serving, asked))
    return "the visitor has a cookie of his own";
  if ((serving.cookies?.vary ?? []).length === 0) return undefined;
  return variedBy(serving, asked.cookies) === toldText(made)
    ? undefined
    : "another cookie that the rule varies by";
}

/** Of a cookie of `vary` there are two values: servers differ in which they take. */
export function hasTwoValues(rule: LeakRule, { cookies }: Pick<AskedBy, "cookies">): boolean {
  const meanings = cookieMeanings(rule, cookies);
  return cookies.some(
    ({ name, value }, at) =>
      meanings[at] === "vary" &&
      cookies.some((other) => other.name === name && other.value !== value),
  );
}

const toldText = ({ fields }: Made): string =>
  (fields.get("cookie") ?? "").split("; ").toSorted().join("; ");

function notByVary(
  made: Made,
  asked: AskedBy,
  storing: LeakRule,
  serving: LeakRule,
): string | undefined {
  if (made.vary === undefined) return "Vary: *";
  const byRule = (serving.vary ?? []).map((name) => name.toLowerCase());
  for (const name of [...made.vary, ...byRule]) {
    if (name === "accept-encoding") continue;
    const [was, is] =
      name === "cookie"
        ? [toldText(made), toldOf(serving, asked)]
        : [oneSpelling(name, made.fields.get(name)), oneSpelling(name, asked.fields.get(name))];
    if (untoldWhereShared.includes(name)) continue;
    if (was !== is) return `Vary: ${name} (${was} and ${is})`;
  }
  return undefined;
}

/** The Cookie field that the origin would be asked with for this visitor. */
function toldOf(serving: LeakRule, { cookies, fields }: AskedBy): string {
  const meanings = cookieMeanings(serving, cookies);
  if (!meanings.includes("own") && !meanings.includes("bypass")) return variedBy(serving, cookies);
  return (fields.get("cookie") ?? "").split("; ").toSorted().join("; ");
}

/** Languages have many spellings, and those of the run differ in capitals and blanks alone (RFC 9110 §12.5.4). */
function oneSpelling(name: string, value = ""): string {
  return name === "accept-language" ? value.toLowerCase().replaceAll(/\s/g, "") : value.trim();
}

/** Returns for how many seconds an answer may be used, the time of stale-while-revalidate included; 0 for never without asking. */
export function usableS({ status }: Made, meaning: Meaning, rule: LeakRule): number {
  const lasts = [200, 203, 204, 300, 301, 308].includes(status);
  const isMissing = status === 404 || status === 410;
  const ruledS = lasts ? rule.ttl_s : isMissing ? rule.negative_ttl_s : undefined;
  // A rule of the run that overrides overrides all that it may; that `s-maxage=0` stays is not looked at, in favour of the ideal.
  const isHeld =
    rule.override === undefined &&
    (meaning.isAskedEachTime || (meaning.isBinding && meaning.lifetimeS === 0));
  const freshS = isHeld ? 0 : (ruledS ?? meaning.lifetimeS);
  const staleS = meaning.isBinding ? 0 : rule.stale_while_revalidate_s || meaning.whileRevalidateS;
  return (freshS ?? 0) + staleS;
}
