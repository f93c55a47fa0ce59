// What one host is served with: every key of a domain in `devlove/1`, and how its values follow from a
// document.
//
// SiteConfig is plain JSON with the document's names. Its keys, types and defaults are those of the schema
// (devlove.ts).

import type { Static, TSchema } from "typebox";
import type { cacheKeys, MatchSchema } from "./devlove-cache.ts";
import { presetRules } from "./cache-presets.ts";
import type { Unset } from "./devlove-parts.ts";
import { DomainSchema, type AsWritten, type Devlove } from "./devlove.ts";

/** The document in force, with every key filled in, read only. */
type Filled<T> = T extends readonly (infer Item)[]
  ? readonly Filled<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]-?: Filled<Exclude<T[Key], undefined>> }
    : T;

type FilledKeys<Keys extends Record<string, TSchema>> = {
  readonly [Key in keyof Keys]:
    | Filled<Static<Keys[Key]>>
    | (Keys[Key] extends Unset ? null : never);
};

/** The parameters that are left out of the cache key: those named, or all but those; and whether the rest is sorted. */
export type QueryRule = { readonly sort: boolean } & (
  | { readonly ignore?: readonly string[] }
  | { readonly keep: readonly string[] }
);

export type CacheSettings = Omit<FilledKeys<typeof cacheKeys>, "query"> & {
  readonly query: QueryRule;
};
/** What the cookies of a request mean, beside those of the published list. */
export type CookieRule = CacheSettings["cookies"];
/** What a rule asks of a request beside its path. */
export type RuleMatch = AsWritten<Static<typeof MatchSchema>>;
export type CacheRule = CacheSettings & { readonly path: string; readonly match: RuleMatch | null };

/** A domain as a valid document says it. */
export type SiteInput = AsWritten<Static<typeof DomainSchema>>;
export type CacheInput = NonNullable<NonNullable<SiteInput["cache"]>["default"]>;

type FilledLimits = Filled<SiteInput>["limits"];
/** A rule of `limits.requests`. Without a burst of its own it has what `rate` says. */
export type RequestRule = Omit<FilledLimits["requests"][number], "burst"> & {
  readonly burst: number | null;
};

export type SiteSettings = Omit<Filled<SiteInput>, "cache" | "limits"> & {
  readonly limits: Omit<FilledLimits, "requests"> & { readonly requests: readonly RequestRule[] };
  readonly cache: {
    /** RFC 3339. */
    readonly paused_until: string | null;
    readonly rules: readonly CacheRule[];
    readonly default: CacheSettings;
  };
};
export type SiteConfig = SiteSettings & {
  readonly host: string;
  /** The domain whose document it is. */
  readonly main_domain: string;
  /** Under which name the document says it: the host's, or the main domain's. */
  readonly said_of: string;
};

export type Redirect = SiteSettings["redirects"][number];
export type BackendSettings = NonNullable<SiteSettings["backend"]>;
export type HealthCheck = NonNullable<BackendSettings["health"]>;

/** The keywords of a schema that say what is in force if the document says nothing. */
type Keywords = {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly "x-unset"?: boolean;
  readonly properties?: Readonly<Record<string, Keywords>>;
  readonly items?: Keywords;
  readonly anyOf?: readonly Keywords[];
};

type Section = Record<string, unknown>;

/** Returns the defaults of a section that the document does not mention. Required keys are left out. */
function defaultsOf({ properties = {} }: Keywords): Section {
  const all = Object.entries(properties).map(([key, child]) => [key, defaultOf(child)] as const);
  return Object.fromEntries(all.filter(([, value]) => value !== undefined));
}

function defaultOf(schema: Keywords): unknown {
  if (schema.default !== undefined) return schema.default;
  if (schema["x-unset"] === true) return null;
  return schema.properties === undefined ? undefined : defaultsOf(schema);
}

/**
 * Makes a function that adds the defaults to a valid value of `schema`, or returns undefined if nothing in it
 * has any. It is made once, because a state may have 1,000 hosts of 200 rules each.
 */
function fillerOf(schema: Keywords): ((value: unknown) => unknown) | undefined {
  const ofItem = schema.items === undefined ? undefined : fillerOf(schema.items);
  if (ofItem !== undefined)
    return (value) => (Array.isArray(value) ? value.map((item) => ofItem(item)) : value);
  const section = schema.anyOf?.find((branch) => branch.properties !== undefined) ?? schema;
  if (section.properties === undefined) return undefined;
  const defaults = defaultsOf(section);
  // A section whose keys exclude each other has one default as a whole, which `{}` stands for too.
  const whole = Object(section.default) as Section;
  const inner = Object.entries(section.properties).flatMap(([key, child]) => {
    const filler = fillerOf(child);
    return filler === undefined ? [] : [[key, filler] as const];
  });
  if ([inner, Object.keys(defaults), Object.keys(whole)].every(({ length }) => length === 0))
    return undefined;
  return (value) => {
    if (typeof value !== "object" || value === null) return value;
    const said: Section = { ...value };
    const isEmpty = Object.keys(said).length === 0;
    const all = { ...(isEmpty && whole), ...defaults, ...said };
    for (const [key, filler] of inner) if (said[key] !== undefined) all[key] = filler(said[key]);
    return all;
  };
}

const fillSite = fillerOf(DomainSchema);

/**
 * The cast is sound: types and values have one source, so a value filled in by a schema has the type derived
 * from it.
 */
function settingsOf(input: SiteInput): SiteSettings {
  const filled = fillSite?.(withPresets(input)) as SiteSettings;
  const { paused_until, rules, default: fallback } = filled.cache;
  return { ...filled, cache: { paused_until, rules, default: fallback } };
}

/** Writes presets out, behind the rules of the document: what these say of a path comes first. */
function withPresets(input: SiteInput): SiteInput {
  const { presets = [], rules = [] } = input.cache ?? {};
  if (presets.length === 0) return input;
  return {
    ...input,
    cache: { ...input.cache, rules: [...rules, ...presets.flatMap(presetRules)] },
  };
}

export const SITE_DEFAULTS: SiteSettings = settingsOf({});

/** A sub-domain as the customer API knows it; `name` is a full host name. */
export type SubDomainInput = {
  readonly name: string;
  readonly share_views_and_views_dir_with_main_domain: boolean;
};

/**
 * Returns the configuration of the main domain, or of one of its sub-domains. A sub-domain that the document
 * does not name has the main domain's configuration. One that it names has what is said there, with defaults
 * for the rest. If a sub-domain has no views_dir of its own, it shares the main domain's or has the folder of
 * its own name. The document must be one that validateDevlove accepted.
 */
export function effectiveDevlove(
  devlove: Devlove,
  mainDomain: string,
  subDomain: SubDomainInput | null,
): SiteConfig {
  const main = named(devlove, mainDomain) ?? {};
  const mainViews = main.views_dir ?? SITE_DEFAULTS.views_dir;
  const of = { main_domain: mainDomain, said_of: mainDomain };
  if (subDomain === null) return { host: mainDomain, ...of, ...withDefaults(main, mainViews) };
  const { name: host } = subDomain;
  const own = named(devlove, host);
  const shared = subDomain.share_views_and_views_dir_with_main_domain;
  const viewsDir = own?.views_dir ?? (shared ? mainViews : subDomain.name);
  const names = { ...of, host, ...(own !== undefined && { said_of: host }) };
  return { ...names, ...withDefaults(own ?? main, viewsDir) };
}

/** Says where a host's configuration stands, for who is to change it. */
export function devloveWords({
  host,
  main_domain: mainDomain,
  said_of: saidOf,
}: Pick<SiteConfig, "host" | "main_domain" | "said_of">): string {
  const document = `the devlove of ${mainDomain}`;
  if (host === mainDomain) return document;
  return saidOf === host ? `${document}, under ${host}` : `${document}, which ${host} follows`;
}

function named(devlove: Devlove, name: string): SiteInput | undefined {
  return Object.hasOwn(devlove.domains, name) ? devlove.domains[name] : undefined;
}

function withDefaults(input: SiteInput, viewsDir: string): SiteSettings {
  const site = settingsOf(input);
  return {
    ...site,
    views_dir: plainPath(viewsDir) || ".",
    single_page: plainFile(site.single_page),
    not_found: plainFile(site.not_found),
  };
}

/** Brings a path to one spelling: "./static/" and "static" are the same. */
function plainPath(path: string): string {
  return path
    .split("/")
    .filter((segment) => segment !== "" && segment !== ".")
    .join("/");
}

function plainFile(path: string | null): string | null {
  return path === null ? null : plainPath(path);
}
