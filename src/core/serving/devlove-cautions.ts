// What a valid devlove may do that its author hardly means: rules that share pages of visitors who are logged
// in, or that share nothing, or under which nobody can log in; limits that refuse what a page is made of;
// images of which nothing is made.

import type { Devlove } from "./devlove.ts";
import type { CacheInput, RuleMatch, SiteInput } from "./effective-devlove.ts";
import { isListedCookie } from "../http/listed-cookies.ts";
import { compileTextPattern } from "./path-pattern.ts";

export type Caution = { readonly path: readonly (string | number)[]; readonly message: string };

/** The most cautions, more than anyone reads; one more says that there are others. */
export const cautionsMax = 100;

/** Returns the cautions in the order of the document. Rules with `bypass` share nothing and are left out. */
export function devloveCautions({ domains }: Devlove): readonly Caution[] {
  const cautions: Caution[] = [];
  for (const [name, { cache, limits, images }] of Object.entries(domains)) {
    cautions.push(...limitCautions(limits ?? {}, ["domains", name, "limits"]));
    cautions.push(...imageCautions(images ?? {}, ["domains", name, "images"]));
    const path = ["domains", name, "cache"];
    for (const [at, rule] of (cache?.rules ?? []).entries()) {
      if (!isOfFiles(rule.path) && !isOfFileTypes(rule))
        cautions.push(...cautionsOf(rule, [...path, "rules", at]));
      cautions.push(...cookieCautions(rule, [...path, "rules", at]));
    }
    if (cache?.default !== undefined)
      for (const judge of [cautionsOf, cookieCautions])
        cautions.push(...judge(cache.default, [...path, "default"]));
    cautions.push(...hiddenRules(cache ?? {}, path), ...presetCautions(cache ?? {}, path));
    if (cautions.length > cautionsMax) {
      const message = `there are more than ${cautionsMax} such rules`;
      return [...cautions.slice(0, cautionsMax), { path: ["domains"], message }];
    }
  }
  return cautions;
}

/** A page with its images, scripts and styles; half of all pages are more than 70 requests (HTTP Archive). */
const ofOnePage = 50;

/** Finds limits that a page meets by what it is made of: every path counts, and few requests may come at once. */
function limitCautions(
  { requests = [] }: NonNullable<SiteInput["limits"]>,
  path: Caution["path"],
): readonly Caution[] {
  return requests.flatMap((rule, at) => {
    const { methods = [], rate, burst = rate } = rule;
    const takesPages = methods.length === 0 || methods.includes("GET");
    if (!takesPages || !takesAll({ path: rule.path }) || burst >= ofOnePage) return [];
    const message = `every path counts, and only ${burst} requests may come at once: a page with its images and scripts may be ${ofOnePage} and more; name a narrower \`path\`, raise \`burst\`, or begin with \`mode: monitor\``;
    return rule.mode === "monitor" ? [] : [{ path: [...path, "requests", at], message }];
  });
}

const keysOfOptimize = ["formats", "quality", "widths", "variants_per_day_max"] as const;

/** Finds what is said of variants of which none is made. */
function imageCautions(
  images: NonNullable<SiteInput["images"]>,
  path: Caution["path"],
): readonly Caution[] {
  const { optimize = false, formats, widths = [], variants_per_day_max: perDay } = images;
  if (!optimize)
    return keysOfOptimize
      .filter((key) => images[key] !== undefined)
      .map((key) => ({
        path: [...path, key],
        message: "has no effect: nothing is made of images without `optimize: true`",
      }));
  const makesNothing = formats?.length === 0 && widths.length === 0;
  return [
    ...(makesNothing
      ? [{ path: [...path, "formats"], message: "nothing is made of images: no format is named and no width" }] // prettier-ignore
      : []),
    ...(perDay === 0
      ? [{ path: [...path, "variants_per_day_max"], message: "nothing is made of images: 0 variants a day" }] // prettier-ignore
      : []),
  ];
}

/** Whether no request goes on to what stands behind the rule. */
function takesAll({ path, match }: { readonly path: string; readonly match?: unknown }): boolean {
  return /^\/?\*\*$/.test(path) && match === undefined;
}

/** Finds rules that another one hides because it takes every path. */
function hiddenRules(
  { rules = [] }: NonNullable<SiteInput["cache"]>,
  path: Caution["path"],
): readonly Caution[] {
  const hiding = rules.findIndex(takesAll);
  return rules.flatMap((_rule, at) => {
    const message = `no request reaches this rule: rule ${hiding} comes before it and takes every path`;
    return hiding < 0 || at <= hiding ? [] : [{ path: [...path, "rules", at], message }];
  });
}

/** Finds presets that a rule, or another preset, hides because it takes every path. */
function presetCautions(
  { rules = [], presets = [] }: NonNullable<SiteInput["cache"]>,
  path: Caution["path"],
): readonly Caution[] {
  const hiding = rules.findIndex(takesAll);
  const before = (at: number): string | undefined => {
    if (hiding >= 0) return `rule ${hiding}`;
    const other = presets.findIndex(({ base = "" }) => base === "");
    return other >= 0 && other < at ? `preset ${other}` : undefined;
  };
  return presets.flatMap((_preset, at) => {
    const what = before(at);
    const message = `no request reaches this preset: ${what} comes before it and takes every path`;
    return what === undefined ? [] : [{ path: [...path, "presets", at], message }];
  });
}

type RuleInput = CacheInput & { readonly match?: RuleMatch };

function cautionsOf(rule: RuleInput, path: Caution["path"]): readonly Caution[] {
  if (rule.bypass === true) return [];
  const { bypass = [], vary = [], ignore = [] } = rule.cookies ?? {};
  const varying = ofItems(vary, [...path, "cookies", "vary"], (pattern) => {
    const what = whatItTellsApart(pattern);
    return (
      what &&
      `${what}: each visitor has another value of it, and is given nothing that was stored for others; a login belongs in \`bypass\``
    );
  });
  const ignoring = ofItems(ignore, [...path, "cookies", "ignore"], (pattern) => {
    const what = whatItHides(pattern, [...bypass, ...vary]);
    return what && `${what}: visitors who are logged in get the page of those who are not`;
  });
  const stripping = rule.ignore_set_cookie === true ? whatStrippingDoes(rule, ignoring.length) : [];
  const keeping =
    rule.browser_ttl_s !== undefined && rule.browser_ttl_s > 0 && bypass.length + vary.length > 0
      ? [
          {
            path: [...path, "browser_ttl_s"],
            message:
              "a browser does not know that pages depend on cookies: who logs in, or chooses another page by a cookie of `vary`, is shown the one of before for so long, unless the application says `Vary: Cookie`",
          },
        ]
      : [];
  return [
    ...overridingCautions(rule, path),
    ...headerCautions(rule, path),
    ...queryCautions(rule, path),
    ...keeping,
    ...varying,
    ...ignoring,
    ...stripping.map((message) => ({ path: [...path, "ignore_set_cookie"], message })),
  ];
}

/** Finds what rules say of Set-Cookie in the answers under them. */
function cookieCautions(
  { headers, bypass }: CacheInput,
  path: Caution["path"],
): readonly Caution[] {
  const { set = {}, remove = [] } = headers?.response ?? {};
  const isCookie = (name: string): boolean => name.toLowerCase() === "set-cookie";
  const at = [...path, "headers", "response"];
  const setting = Object.keys(set)
    .filter(isCookie)
    .map((name): Caution => {
      const message =
        bypass === true
          ? "every visitor is given the same cookie, in place of those that the application sets"
          : "every visitor is given the same cookie with every answer, also with those of the cache, in place of those that the application sets; under `ttl_s` whoever has it is passed on, unless `cookies` says what it means";
      return { path: [...at, "set", name], message };
    });
  const removing = remove.flatMap((name, item): readonly Caution[] =>
    isCookie(name)
      ? [
          {
            path: [...at, "remove", item],
            message:
              "cookies that the application sets reach no visitor, those of a login neither; answers that set one are not stored for that",
          },
        ]
      : [],
  );
  return [...setting, ...removing];
}

/** Headers of which nearly every visitor sends another value. */
const ownHeaders: ReadonlySet<string> = new Set(["user-agent", "referer", "x-request-id"]);

function headerCautions({ vary = [] }: CacheInput, path: Caution["path"]): readonly Caution[] {
  return vary.flatMap((name, at) => {
    if (name.includes("*"))
      return [
        {
          path: [...path, "vary", at],
          message: `${JSON.stringify(name)} is taken for the name of a header, which nobody sends: no pattern is taken here`,
        },
      ];
    if (!ownHeaders.has(name.toLowerCase())) return [];
    const message = `nearly every visitor sends another ${name}, and is given nothing that was stored for others`;
    return [{ path: [...path, "vary", at], message }];
  });
}

/** Finds rules under which all queries of a path have one answer. */
function queryCautions({ query }: CacheInput, path: Caution["path"]): readonly Caution[] {
  const dropsAll = query?.ignore?.some((name) => isAll(name)) === true;
  const key = query?.keep?.length === 0 ? "keep" : dropsAll ? "ignore" : undefined;
  if (key === undefined) return [];
  const message =
    "every query of a path has the same answer, that of a search and of a second page too: the application is asked without one";
  return [{ path: [...path, "query", key], message }];
}

function overridingCautions(
  { override = [], ttl_s, negative_ttl_s }: CacheInput,
  path: Caution["path"],
): readonly Caution[] {
  if (override.length === 0) return [];
  const message =
    ttl_s === undefined && negative_ttl_s === undefined
      ? "nothing is overridden without `ttl_s` or `negative_ttl_s`"
      : "what the application wants to be asked about each time is sent without asking it: make sure that it says `private` or `no-store` of every page that is for one visitor";
  return [{ path: [...path, "override"], message }];
}

/** Returns the cautions about the items of a list. One that names a single value is meant. */
function ofItems(
  items: readonly string[],
  path: Caution["path"],
  cautionOf: (pattern: string) => string | undefined,
): readonly Caution[] {
  return items.flatMap((item, at) => {
    const [name = "", value = "*"] = item.split("=", 2);
    const message = value.includes("*") ? cautionOf(name) : undefined;
    return message === undefined ? [] : [{ path: [...path, at], message }];
  });
}

function whatStrippingDoes(
  { cookies, ttl_s, match }: RuleInput,
  ignoredLogins: number,
): readonly string[] {
  if (ignoredLogins > 0)
    return [
      "cookies that the application sets are removed, and those that visitors send are ignored: nobody can log in on such a page",
    ];
  const said: string[] = [];
  if ((match?.media_type ?? []).length > 0)
    said.push(
      "cookies that the application sets are removed from all answers of these media types: no login and no session begins with one of them",
    );
  else if (cookies === undefined)
    said.push(
      "cookies that the application sets are removed for everybody, and the rule does not say what the cookies of visitors mean: name those of a login in `cookies.bypass`, those that choose a page in `cookies.vary`, and write `cookies: {}` if there are none",
    );
  if (ttl_s !== undefined)
    said.push(
      "with `ttl_s` a page that opens a session is sent to everybody without the session: what it contains of the session, such as the token of a form, is the same for all visitors and valid for none",
    );
  return said;
}

/** Returns whether a path names pictures, styles and the like, which are the same whoever asks. */
function isOfFiles(path: string): boolean {
  return /\.(?:avif|bmp|css|eot|gif|ico|jpe?g|js|map|mjs|mp[34]|ogg|otf|pdf|png|svg|ttf|wasm|wav|web[mp]|woff2?|zip)$/i.test(
    path,
  );
}

/** Returns whether a rule is for answers of such media types alone. */
function isOfFileTypes({ match }: RuleInput): boolean {
  const types = match?.media_type ?? [];
  return types.length > 0 && types.every((type) => fileTypes.test(type));
}

const fileTypes =
  /^(?:(?:audio|font|image|video)\/|(?:text\/(?:css|javascript)|application\/(?:javascript|wasm|zip))$)/i;

/**
 * Says which login a pattern hides, or returns undefined if nothing looks like one. What `before` names is no
 * longer there to be hidden.
 */
function whatItHides(pattern: string, before: readonly string[]): string | undefined {
  if (isAll(pattern)) return before.length > 0 ? undefined : "all cookies are ignored";
  return isOfList(pattern) ? undefined : loginIn(pattern, before);
}

/** Says what makes a pattern tell every visitor from the others, or returns undefined. */
function whatItTellsApart(pattern: string): string | undefined {
  if (isAll(pattern)) return "every cookie tells answers apart";
  return isOfList(pattern)
    ? `${JSON.stringify(pattern)} is a cookie of analytics or consent`
    : loginIn(pattern, []);
}

function loginIn(pattern: string, before: readonly string[]): string | undefined {
  const shown = JSON.stringify(pattern);
  if (loginWords.test(pattern) || loginCookies.includes(pattern))
    return `${shown} looks like the cookie of a login or a cart`;
  if (!pattern.includes("*")) return undefined;
  const { matches } = compileTextPattern(pattern);
  const others = before.map(compileTextPattern);
  const name = loginCookies.find(
    (one) => matches(one) && !others.some((other) => other.matches(one)),
  );
  return name === undefined ? undefined : `${shown} covers the cookie ${JSON.stringify(name)}`;
}

function isAll(pattern: string): boolean {
  return /^\*+$/.test(pattern);
}

function isOfList(pattern: string): boolean {
  return ["1", "_1", "A"].some((part) => isListedCookie(pattern.replaceAll("*", part)));
}

const loginWords =
  /sess|(?:^|[^a-z])sid(?:$|[^a-z])|log(?:ged)?[_-]?in|auth(?!or(?![a-z]))|token|jwt|remember|user(?!lang|locale)|member|customer|account|cart(?!oon)|basket|csrf|xsrf/i;

/**
 * Names that frameworks and applications give to the cookies by which they know a visitor. Each page would be
 * the visitor's own if no pattern took it in.
 */
export const loginCookies: readonly string[] = [
  "PHPSESSID", "JSESSIONID", "ASP.NET_SessionId", ".ASPXAUTH", ".AspNetCore.Cookies",
  "connect.sid", "session", "sessionid", "session_id", "sid", "_app_session", "ci_session",
  "laravel_session", "CAKEPHP", "CFID", "CFTOKEN", "XSRF-TOKEN", "csrftoken", "jwt", "token",
  "auth_token", "access_token", "remember_token", "remember_me", "user", "user_id", "login",
  "__Host-session", "__Secure-next-auth.session-token", "next-auth.session-token",
  "sb-access-token", "wordpress_logged_in_0123456789abcdef0123456789abcdef",
  "wp-postpass_0123456789abcdef0123456789abcdef", "wp_woocommerce_session_0123456789abcdef",
  "comment_author_0123456789abcdef0123456789abcdef", "woocommerce_items_in_cart",
  "SESS0123456789abcdef", "SSESS0123456789abcdef", "frontend", "X-Magento-Vary",
  "PrestaShop-0123456789abcdef", "MoodleSession", "xf_user", "phpbb3_abc_sid", "fe_typo_user",
  "be_typo_user", "cart", "basket", "customer", "account",
]; // prettier-ignore
