// What one host is served with: the keys of a domain in `devlove/1`, every one present, and how they follow from a document.
//
// SiteConfig is plain JSON with the document's names. What a document may say (anything left out) is SiteInput; its schema is
// wire/devlove.ts, which takes the defaults from here.

export type Redirect = {
  readonly from: string;
  readonly to: string;
  readonly status: 301 | 302 | 307 | 308;
};

/** What is left out of the cache key: the parameters named, or all but them. */
export type QueryRule =
  | { readonly ignore: readonly string[] }
  | { readonly keep: readonly string[] };

/** Which cookies of a request mean nothing for its answer, beside those of the published list. */
export type CookieRule = { readonly ignore: readonly string[] };

export type CacheSettings = {
  /** Null: the origin's headers decide. */
  readonly ttl_s: number | null;
  readonly bypass: boolean;
  readonly query: QueryRule;
  readonly cookies: CookieRule;
  readonly stale_while_revalidate_s: number;
  readonly stale_if_error_s: number;
  readonly ignore_set_cookie: boolean;
};

export type CacheRule = CacheSettings & { readonly path: string };

export type HealthCheck = {
  readonly path: string;
  readonly interval_s: number;
  readonly timeout_s: number;
  readonly statuses: readonly number[];
};

export type BackendSettings = {
  readonly urls: readonly string[];
  /** `preserve`, or what is sent as Host and SNI. */
  readonly host: string;
  readonly connect_timeout_s: number;
  readonly response_timeout_s: number;
  readonly idle_timeout_s: number;
  readonly retries: number;
  readonly health: HealthCheck | null;
};

export type SiteSettings = {
  /** A folder of the viewset without outer slashes, `.` and `..`; "." is the viewset's root. */
  readonly views_dir: string;
  readonly index: readonly string[];
  /** Relative to views_dir, without leading slash; so is not_found. */
  readonly single_page: string | null;
  readonly not_found: string | null;
  readonly redirects: readonly Redirect[];
  readonly headers: {
    readonly set: Readonly<Record<string, string>>;
    readonly remove: readonly string[];
  };
  readonly compression: boolean;
  readonly backend: BackendSettings | null;
  readonly cache: { readonly rules: readonly CacheRule[]; readonly default: CacheSettings };
  readonly static: { readonly max_age_s: number };
  readonly bots: { readonly mode: "enforce" | "monitor" };
  readonly images: { readonly optimize: boolean; readonly variants_per_day_max: number };
  readonly tls: { readonly redirect_http: boolean; readonly hsts_s: number };
  readonly limits: { readonly body_bytes_max: number };
};

export type SiteConfig = SiteSettings & { readonly host: string; readonly main_domain: string };

type QueryInput = { readonly ignore?: readonly string[]; readonly keep?: readonly string[] };
export type CacheInput = Partial<Omit<CacheSettings, "ttl_s" | "query" | "cookies">> & {
  readonly ttl_s?: number;
  readonly query?: QueryInput;
  readonly cookies?: Partial<CookieRule>;
};
type BackendInput = Partial<BackendSettings> & Pick<BackendSettings, "urls">;
type Plain = "views_dir" | "index" | "single_page" | "not_found" | "redirects" | "compression";

/** A domain as a valid document says it. */
export type SiteInput = Partial<Pick<SiteSettings, Plain>> & {
  readonly [K in "headers" | "static" | "bots" | "images" | "tls" | "limits"]?: Partial<
    SiteSettings[K]
  >;
} & {
  readonly backend?: BackendInput | null;
  readonly cache?: {
    readonly rules?: readonly (CacheInput & { readonly path: string })[];
    readonly default?: CacheInput;
  };
};

export type DevloveInput = { readonly domains: Readonly<Record<string, SiteInput>> };

export const CACHE_DEFAULTS: CacheSettings = {
  ttl_s: null,
  bypass: false,
  query: { ignore: [] },
  cookies: { ignore: [] },
  stale_while_revalidate_s: 0,
  stale_if_error_s: 0,
  ignore_set_cookie: false,
};

export const BACKEND_DEFAULTS: Omit<BackendSettings, "urls"> = {
  host: "preserve",
  connect_timeout_s: 5,
  response_timeout_s: 30,
  idle_timeout_s: 60,
  retries: 1,
  health: null,
};

export const SITE_DEFAULTS: SiteSettings = {
  views_dir: ".",
  index: ["index.html"],
  single_page: null,
  not_found: null,
  redirects: [],
  headers: { set: {}, remove: [] },
  compression: true,
  backend: null,
  cache: { rules: [], default: CACHE_DEFAULTS },
  static: { max_age_s: 0 },
  bots: { mode: "enforce" },
  images: { optimize: false, variants_per_day_max: 10_000 },
  tls: { redirect_http: false, hsts_s: 0 },
  limits: { body_bytes_max: 104_857_600 }, // 100 MiB.
};

/** As the customer API knows it; `name` is a full host name. */
export type SubDomainInput = {
  readonly name: string;
  readonly share_views_and_views_dir_with_main_domain: boolean;
};

/**
 * The configuration of the main domain, or of a sub-domain of it. A sub-domain that the document does not name has the main domain's;
 * one that it names has what is said there, defaults for the rest. Where a sub-domain says no views_dir of its own, it shares the main
 * domain's or has the folder of its own name. The document must be one that validateDevlove accepted.
 */
export function effectiveDevlove(
  devlove: DevloveInput,
  mainDomain: string,
  subDomain: SubDomainInput | null,
): SiteConfig {
  const main = named(devlove, mainDomain) ?? {};
  const mainViews = main.views_dir ?? SITE_DEFAULTS.views_dir;
  const names = { host: subDomain?.name ?? mainDomain, main_domain: mainDomain };
  if (subDomain === null) return { ...names, ...withDefaults(main, mainViews) };
  const own = named(devlove, subDomain.name);
  const shared = subDomain.share_views_and_views_dir_with_main_domain;
  const viewsDir = own?.views_dir ?? (shared ? mainViews : subDomain.name);
  return { ...names, ...withDefaults(own ?? main, viewsDir) };
}

function named(devlove: DevloveInput, name: string): SiteInput | undefined {
  return Object.hasOwn(devlove.domains, name) ? devlove.domains[name] : undefined;
}

function withDefaults(input: SiteInput, viewsDir: string): SiteSettings {
  return {
    views_dir: plainPath(viewsDir) || ".",
    index: input.index ?? SITE_DEFAULTS.index,
    single_page: plainFile(input.single_page),
    not_found: plainFile(input.not_found),
    redirects: input.redirects ?? SITE_DEFAULTS.redirects,
    headers: { ...SITE_DEFAULTS.headers, ...input.headers },
    compression: input.compression ?? SITE_DEFAULTS.compression,
    backend:
      input.backend === undefined || input.backend === null
        ? null
        : { ...BACKEND_DEFAULTS, ...input.backend },
    cache: {
      rules: (input.cache?.rules ?? []).map((rule) => ({
        path: rule.path,
        ...cacheSettings(rule),
      })),
      default: cacheSettings(input.cache?.default ?? {}),
    },
    static: { ...SITE_DEFAULTS.static, ...input.static },
    bots: { ...SITE_DEFAULTS.bots, ...input.bots },
    images: { ...SITE_DEFAULTS.images, ...input.images },
    tls: { ...SITE_DEFAULTS.tls, ...input.tls },
    limits: { ...SITE_DEFAULTS.limits, ...input.limits },
  };
}

function cacheSettings({ query, cookies, ...said }: CacheInput): CacheSettings {
  const rule = query?.keep === undefined ? { ignore: query?.ignore ?? [] } : { keep: query.keep };
  const cookieRule = { ...CACHE_DEFAULTS.cookies, ...cookies };
  return { ...CACHE_DEFAULTS, ...said, query: rule, cookies: cookieRule };
}

/** "./static/" and "static" are one. */
function plainPath(path: string): string {
  return path
    .split("/")
    .filter((segment) => segment !== "" && segment !== ".")
    .join("/");
}

function plainFile(path: string | null | undefined): string | null {
  return path === null || path === undefined ? null : plainPath(path);
}
