// Cache-Control (RFC 9111 §5.2) and CDN-Cache-Control (RFC 9213), read strictly: what is doubtful is not
// fresh.

import { fieldValue, listMembers, type Field } from "./http-fields.ts";

/** Directive → its arguments in order of appearance; `true` where one stood without argument. */
export type Directives = ReadonlyMap<string, readonly (string | true)[]>;

const isSeconds = /^\d+$/;
/** RFC 9111 §1.2.2: larger values count as this one. */
const secondsMax = 2 ** 31;

export function parseCacheControl(value: string | undefined): Directives {
  const directives = new Map<string, (string | true)[]>();
  for (const member of listMembers(value ?? "")) {
    const equals = member.indexOf("=");
    const name = (equals < 0 ? member : member.slice(0, equals)).trim().toLowerCase();
    const argument = equals < 0 ? true : unquoted(member.slice(equals + 1));
    directives.set(name, [...(directives.get(name) ?? []), argument]);
  }
  return directives;
}

/**
 * A directive as origins send them. Text with other characters is not taken for one, though RFC 9110 would
 * allow some of them in a name.
 */
const wellFormed = /^[\w-]+(?: *= *(?:[\w-]+|"(?:[^"\\]|\\.)*"))?$/;
const prohibition =
  /(?<![\w-])(?:private|no-store|no-cache|no-transform|must-revalidate|proxy-revalidate)(?![\w-])/gi;

/**
 * Reads the directives of a response. Some origins put `;` or a blank between them. A directive that forbids
 * is heard in there too, for a slip of the pen must not give one visitor's page to others; a directive that
 * allows, or that gives a lifetime, is not.
 */
export function responseDirectives(value: string | undefined): Directives {
  if (value === undefined) return nothingSaid;
  let directives = known.get(value);
  if (directives !== undefined) return directives;
  directives = readResponse(value);
  if (value.length > knownCharsMax) return directives;
  if (known.size >= knownMax) known.clear();
  known.set(value, directives);
  return directives;
}

const nothingSaid: Directives = new Map();
/** What was read lately: origins say the same few things again and again. */
const known = new Map<string, Directives>();
const knownMax = 1_000;
const knownCharsMax = 200;

function readResponse(value: string): Directives {
  const directives = parseCacheControl(value);
  const mangled = listMembers(value).filter((member) => !wellFormed.test(member));
  return mangled.length === 0 ? directives : withProhibitions(directives, mangled.join());
}

function withProhibitions(directives: Directives, text: string): Directives {
  const all = new Map(directives);
  for (const [word] of text.matchAll(prohibition)) {
    const said = word.toLowerCase();
    // proxy-revalidate forbids a shared cache the same, but does not allow it to store answers to credentials
    // (RFC 9111 §3.5).
    const name = said === "must-revalidate" ? "proxy-revalidate" : said;
    all.set(name, all.get(name) ?? [true]);
  }
  return all;
}

/** The directives of a request (RFC 9111 §5.2.1, RFC 5861 §4). */
export type RequestDirectives = {
  readonly noStore: boolean;
  /** Set also by `Pragma: no-cache` where there is no Cache-Control (§5.4). */
  readonly noCache: boolean;
  readonly onlyIfCached: boolean;
  readonly maxAgeS: number | undefined;
  readonly minFreshS: number | undefined;
  /** 0 if nothing stale is accepted, Infinity if anything is. */
  readonly maxStaleS: number;
  readonly staleIfErrorS: number;
};

const nothingAsked: RequestDirectives = {
  noStore: false,
  noCache: false,
  onlyIfCached: false,
  maxAgeS: undefined,
  minFreshS: undefined,
  maxStaleS: 0,
  staleIfErrorS: 0,
};

export function requestDirectives(fields: readonly Field[]): RequestDirectives {
  const value = fieldValue(fields, "cache-control");
  if (value === undefined) {
    const pragma = fieldValue(fields, "pragma");
    if (pragma === undefined) return nothingAsked;
    return { ...nothingAsked, noCache: parseCacheControl(pragma).has("no-cache") };
  }
  const directives = parseCacheControl(value);
  return {
    noStore: directives.has("no-store"),
    noCache: directives.has("no-cache"),
    onlyIfCached: directives.has("only-if-cached"),
    maxAgeS: directiveSeconds(directives, "max-age"),
    minFreshS: directiveSeconds(directives, "min-fresh"),
    maxStaleS:
      directives.get("max-stale")?.[0] === true
        ? Infinity
        : (directiveSeconds(directives, "max-stale") ?? 0),
    staleIfErrorS: directiveSeconds(directives, "stale-if-error") ?? 0,
  };
}

/** Returns whether the request says no-transform (RFC 9111 §5.2.1.6). */
export function asksNoTransform(fields: readonly Field[]): boolean {
  const value = fieldValue(fields, "cache-control");
  return value !== undefined && parseCacheControl(value).has("no-transform");
}

function unquoted(text: string): string {
  return /^"(?:[^"\\]|\\.)*"$/.test(text) ? text.slice(1, -1).replaceAll(/\\(.)/g, "$1") : text;
}

/**
 * Returns the least of the values stated, 0 if one of them is no number (§4.2.1: conflicting or invalid is
 * stale), or undefined if the directive is absent.
 */
export function directiveSeconds(directives: Directives, name: string): number | undefined {
  const said = directives.get(name);
  if (said === undefined) return undefined;
  return Math.min(
    secondsMax,
    ...said.map((value) =>
      typeof value === "string" && isSeconds.test(value) ? Number(value) : 0,
    ),
  );
}

/**
 * Returns whether the origin allows something by this directive. Other text beside it, as a `;` in place of a
 * comma leaves there (`s-maxage=60; stale-if-error=60`), makes it doubtful, and then it allows nothing.
 */
export function isAllowedBy(directives: Directives, name: string): boolean {
  const said = directives.get(name) ?? [];
  const isMeant = (value: string | true): boolean =>
    name === "s-maxage" ? typeof value === "string" && isSeconds.test(value) : value === true;
  return said.length > 0 && said.every(isMeant);
}

/**
 * Returns the directives that hold for this cache. A CDN-Cache-Control that is a non-empty structured
 * dictionary replaces both Cache-Control and Expires. Otherwise the directives of Cache-Control hold,
 * together with what a malformed CDN-Cache-Control forbids. Surrogate-Control is older than RFC 9213 and not
 * part of it: what it forbids holds too, what it allows is ignored.
 */
export function cacheDirectives(fields: readonly Field[]): {
  readonly directives: Directives;
  readonly isTargeted: boolean;
} {
  const value = fieldValue(fields, "cdn-cache-control");
  const targeted = parseTargeted(value);
  if (targeted !== undefined) return { directives: targeted, isTargeted: true };
  const untargeted = responseDirectives(fieldValue(fields, "cache-control"));
  const further = [value, fieldValue(fields, "surrogate-control")].filter(
    (text) => text !== undefined,
  );
  const directives =
    further.length === 0 ? untargeted : withProhibitions(untargeted, further.join());
  return { directives, isTargeted: false };
}

const sfItem = String.raw`(?:-?\d{1,15}(?:\.\d{1,3})?|"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"|\?[01]|:[A-Za-z0-9+/=]*:|[A-Za-z*][!#$%&'*+.^_\x60|~0-9A-Za-z:/-]*)`;
const sfKey = String.raw`[a-z*][a-z0-9_.*-]*`;
const sfMember = new RegExp(`^(${sfKey})(?:=(${sfItem}))?((?:; *${sfKey}(?:=${sfItem})?)*)$`);

/**
 * Parses a dictionary of RFC 9651 without inner lists, which no directive has. Returns undefined if it is
 * absent, empty or malformed.
 */
function parseTargeted(value: string | undefined): Directives | undefined {
  if (value === undefined) return undefined;
  const directives = new Map<string, (string | true)[]>();
  let parameters = "";
  for (const part of splitMembers(value)) {
    const match = sfMember.exec(part);
    if (match?.[1] === undefined) return undefined;
    // The last of equal keys holds (RFC 9651 §3.2); false counts as absent.
    if (match[2] === "?0") directives.delete(match[1]);
    else directives.set(match[1], [argumentOf(match[2])]);
    parameters += match[3] ?? "";
  }
  if (directives.size === 0) return undefined;
  // No directive has parameters: whoever wrote `max-age=0; private` meant two directives.
  return parameters === "" ? directives : withProhibitions(directives, parameters);
}

/** Keeps the quotes of a number in quotes, so that it is no number: to RFC 9651 it is a string. */
function argumentOf(item: string | undefined): string | true {
  return item === undefined || item === "?1" ? true : item;
}

/** Splits a list but, unlike listMembers, keeps empty members, which a structured field must not have. */
function splitMembers(value: string): readonly string[] {
  if (value.trim() === "") return [];
  const members: string[] = [];
  let from = 0;
  let quoted = false;
  for (let at = 0; at <= value.length; at++) {
    const char = value[at];
    if (char === "\\" && quoted) at++;
    else if (char === '"') quoted = !quoted;
    else if (char === undefined || (char === "," && !quoted)) {
      members.push(value.slice(from, at).trim());
      from = at + 1;
    }
  }
  return members;
}
