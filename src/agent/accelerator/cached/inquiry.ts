// One request to a backend, as the cache and the origin are asked about it. What a hit has no need of is made when it is asked for.

import { requestDirectives, type RequestDirectives } from "../../../core/http/cache-control.ts";
import { withEdits } from "../../../core/http/header-edits.ts";
import { fieldValue, withoutFields, type Field } from "../../../core/http/http-fields.ts";
import type { Reuse, Selector } from "../../../core/http/http-reuse.ts";
import {
  normalAcceptEncoding,
  requestEditsKey,
  ruleChoiceName,
  selectingBy,
  toldCookiesName,
  type Selecting,
} from "../../../core/http/http-vary.ts";
import { cookieFields, toldToShare } from "../../../core/http/request-cookies.ts";
import { sentPath, type RequestTarget } from "../../../core/http/request-path.ts";
import type { BackendSettings, SiteConfig } from "../../../core/serving/effective-devlove.ts";
import type { StoredFact } from "../../../core/serving/request-plan.ts";
import type { CacheRoute } from "../../../core/serving/cache-route.ts";
import { queryRuleName, type SiteRoutes } from "../../../core/serving/site-routes.ts";
import type { Entry, EntryKey } from "../../cache/entry.ts";
import type { Exchange } from "../doors/exchange.ts";
import { interimTo } from "../origin/origin-answer.ts";
import { askedScheme, originFields, untoldWhereShared } from "../origin/origin-request.ts";
import type { FlightPlan } from "./flight.ts";
import { formingOf, type Asking, type Forming } from "./forms.ts";

/** One look at the cache. The numbers were read before it. */
export type Look = StoredFact & {
  readonly sourceNo: number;
  readonly mark: number;
  readonly invalidationMark: number;
  readonly entries: readonly Entry[];
  readonly base: Entry | undefined;
  /** A soft clear has made `base` stale, which its lifetime tells. */
  readonly isSoftened: boolean;
};

export type Fetch = Extract<Reuse, { kind: "fetch" }>;

/** The visitor's own conditions are judged here, and what may be stored is asked for in one of few codings. */
const ownConditions: ReadonlySet<string> = new Set([
  "accept-encoding",
  "if-none-match",
  "if-modified-since",
]);
const untold: ReadonlySet<string> = new Set([...untoldWhereShared, ...ownConditions]);
const untoldAndCookies: ReadonlySet<string> = new Set([...untold, ...cookieFields]);
const ofCookies: ReadonlySet<string> = new Set([...cookieFields, toldCookiesName]);
const ranges: ReadonlySet<string> = new Set(["range", "if-range"]);

export class Inquiry implements Selector {
  readonly exchange: Exchange;
  readonly site: SiteConfig;
  readonly routes: SiteRoutes;
  readonly backend: BackendSettings;
  readonly target: RequestTarget;
  readonly rule: CacheRoute;
  readonly key: EntryKey;
  readonly selecting: Selecting;
  passesOver = false;
  #directives: RequestDirectives | undefined;
  #fields: readonly Field[] | undefined;

  constructor(
    exchange: Exchange,
    { site, routes }: { readonly site: SiteConfig; readonly routes: SiteRoutes },
    backend: BackendSettings,
    target: RequestTarget,
    rule: CacheRoute,
  ) {
    this.exchange = exchange;
    this.site = site;
    this.routes = routes;
    this.backend = backend;
    this.target = target;
    this.rule = rule;
    this.key = {
      domain: site.main_domain,
      host: site.host,
      kind: "generated",
      path: target.rawPath,
      query: rule.normalizeQuery(target.rawQuery),
    };
    this.selecting = selectingBy((name) => this.#selecting(name));
  }

  /** Returns what decides in which form an answer with this head is sent. */
  formingOf(fields: readonly Field[]): Forming {
    return formingOf(this.site, this.rule, fields);
  }

  get asking(): Asking {
    const { method, fields } = this.exchange;
    return { method, fields, pictureWidth: this.target.pictureWidth };
  }

  /** Path and query as sent. */
  get path(): string {
    return sentPath(this.target);
  }

  get directives(): RequestDirectives {
    return (this.#directives ??= requestDirectives(this.exchange.fields));
  }

  get isAuthorized(): boolean {
    return fieldValue(this.exchange.fields, "authorization") !== undefined;
  }

  /** Whether the cookies are the visitor's own: then the origin is told them all, and its answer is not for those who wait. */
  get hasOwnCookies(): boolean {
    return this.toldToShare === undefined;
  }

  /** See core/http/request-cookies.ts. */
  get toldToShare(): string | undefined {
    return toldToShare(this.rule.cookies(this.exchange.fields));
  }

  /** Whether a part is asked for: the origin's answer is for this visitor alone then. */
  get isRanged(): boolean {
    return fieldValue(this.exchange.fields, "range") !== undefined;
  }

  /** The fields with which an origin is asked. */
  get fields(): readonly Field[] {
    return (this.#fields ??= this.#fieldsOfFetch());
  }

  #fieldsOfFetch(): readonly Field[] {
    const cookies = this.toldToShare;
    const dropped = cookies === undefined ? untold : untoldAndCookies;
    const told = [...originFields(this.exchange, this.site.host, this.backend, dropped)];
    if (cookies !== undefined && cookies !== "") told.push(["Cookie", cookies]);
    const codings = this.#codings();
    if (codings !== "") told.push(["Accept-Encoding", codings]);
    return withEdits(told, this.rule.settings.headers.request);
  }

  #codings(): string {
    return normalAcceptEncoding(fieldValue(this.exchange.fields, "accept-encoding"));
  }

  #selecting(name: string): string | undefined {
    if (name === "x-forwarded-proto") return askedScheme(this.exchange);
    if (name === "accept-encoding") return this.#codings();
    if (name === queryRuleName) return this.rule.queryRule;
    if (name === ruleChoiceName) return this.rule.choice;
    if (name === requestEditsKey) return this.rule.requestEdits;
    if (this.rule.toldAlike.has(name)) return "";
    return fieldValue(this.fields, name === toldCookiesName ? "cookie" : name);
  }
}

/** Plans a flight. In the background it goes for all, without cookies that are anybody's own. */
export function planFlight(
  inquiry: Inquiry,
  { sourceNo, mark, invalidationMark, base: stored }: Look,
  { conditions: wanted, standsIn }: Pick<Fetch, "conditions" | "standsIn">,
  isBackground = false,
): FlightPlan {
  const base = stored !== undefined && mayConfirm(inquiry, stored) ? stored : undefined;
  const conditions = base === undefined ? [] : wanted;
  const { key, backend, path, rule, isAuthorized, isRanged, selecting } = inquiry;
  const isForWhole = isBackground || conditions.length > 0;
  const asksPart = isRanged && !isForWhole;
  const hasCookies = !isBackground && inquiry.hasOwnCookies;
  const leavesCookies = isBackground && inquiry.hasOwnCookies;
  const fields = leavesCookies ? withoutFields(inquiry.fields, cookieFields) : inquiry.fields;
  const { noStore } = inquiry.directives;
  return {
    key,
    backend,
    path,
    // A part is cut out of what is stored, once that is confirmed or fetched anew.
    fields: isRanged && !asksPart ? withoutFields(fields, ranges) : fields,
    conditions,
    base,
    standsIn,
    request: { noStore, isAuthorized, isRanged: asksPart, hasCookies },
    settings: rule.settings,
    settingsOf: (head) => rule.forAnswer(head).settings,
    // Variants are selected by what the origin is asked with.
    selecting: leavesCookies ? (name) => (ofCookies.has(name) ? "" : selecting(name)) : selecting,
    sourceNo,
    mark,
    invalidationMark,
    isBackground,
    // Only the one who asked is told: whether the answer is for others too is not known before its head.
    onInterim: isBackground ? undefined : interimTo(inquiry.exchange, rule.earlyEdits),
  };
}

/**
 * Whether an answer to this request may become what is known of the stored response. One that was stored while no part of the query was left out is that of its very
 * URL, under any rule, and has to stay so: an answer for another query does not confirm it.
 */
function mayConfirm({ target, key }: Inquiry, { vary }: Entry): boolean {
  return vary?.[queryRuleName] !== undefined || target.rawQuery === key.query;
}
