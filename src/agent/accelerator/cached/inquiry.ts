// What is known of a request that the cache has a part in, and what is made of it: a fetch to be begun, an answer from an entry.

import { requestDirectives, type RequestDirectives } from "../../../core/http/cache-control.ts";
import type { BackendSettings, SiteConfig } from "../../../core/serving/effective-devlove.ts";
import { fieldValue, withoutFields, type Field } from "../../../core/http/http-fields.ts";
import type { Reuse } from "../../../core/http/http-reuse.ts";
import { normalAcceptEncoding, selectingBy, type Selecting } from "../../../core/http/http-vary.ts";
import { cookieFields } from "../../../core/http/request-cookies.ts";
import type { RequestTarget } from "../../../core/http/request-path.ts";
import {
  queryRuleName,
  type CacheRoute,
  type SiteRoutes,
} from "../../../core/serving/site-routes.ts";
import type { Entry, EntryKey } from "../../cache/entry.ts";
import { answerEntry, type EntryUse } from "./entry-answer.ts";
import type { Exchange } from "../doors/exchange.ts";
import type { FlightDeps, FlightPlan } from "./flight.ts";
import type { Flights } from "./flights.ts";
import { askedScheme, sharedRequestFields } from "../origin/origin-request.ts";
import type { VariantMaker } from "./variant-maker.ts";

export type GeneratedDeps = FlightDeps & {
  readonly flights: Flights;
  readonly variants: VariantMaker;
};

export type GeneratedRequest = {
  readonly site: SiteConfig;
  readonly backend: BackendSettings;
  readonly target: RequestTarget;
  readonly routes: SiteRoutes;
  readonly route: CacheRoute;
  /** Path and query as sent: `/a?` is not `/a` to every origin. */
  readonly path: string;
};

/** What stays the same while a request is answered. */
export type Inquiry = {
  readonly request: GeneratedRequest;
  readonly key: EntryKey;
  /** As an origin is asked with. */
  readonly fields: () => readonly Field[];
  readonly directives: RequestDirectives;
  readonly selecting: Selecting;
  readonly isAuthorized: boolean;
  /** Its cookies are its visitor's: the origin is told them, and what it answers is not for those who wait. Others' cookies are not told. */
  readonly hasOwnCookies: () => boolean;
  /** Of a part only: for itself alone. */
  readonly isRanged: boolean;
};

/** One look at the cache. The numbers were read before it. */
export type Look = {
  readonly sourceNo: number;
  readonly mark: number;
  readonly entries: readonly Entry[];
  readonly base: Entry | undefined;
};

const ownConditions: ReadonlySet<string> = new Set([
  "accept-encoding",
  "if-none-match",
  "if-modified-since",
]);

/** What of the request a hit has no need of is made when it is asked for. */
export function inquire(exchange: Exchange, request: GeneratedRequest, key: EntryKey): Inquiry {
  const { fields } = exchange;
  const acceptEncoding = (): string => normalAcceptEncoding(fieldValue(fields, "accept-encoding"));
  let asked: readonly Field[] | undefined;
  const askedFields = (): readonly Field[] =>
    (asked ??= fieldsOfFetch(exchange, request, acceptEncoding(), hasOwnCookies()));
  let own: boolean | undefined;
  const hasOwnCookies = (): boolean => (own ??= request.route.cookies(fields).kind === "own");
  return {
    request,
    key,
    fields: askedFields,
    directives: requestDirectives(fields),
    selecting: selectingBy((name) => {
      if (name === "x-forwarded-proto") return askedScheme(exchange);
      if (name === "accept-encoding") return acceptEncoding();
      if (name === queryRuleName) return request.route.queryRule;
      return fieldValue(askedFields(), name);
    }),
    isAuthorized: fieldValue(fields, "authorization") !== undefined,
    hasOwnCookies,
    isRanged: fieldValue(fields, "range") !== undefined,
  };
}

/** A fetch that may be stored asks for the whole and in one of few codings; the visitor's own conditions are judged here. */
function fieldsOfFetch(
  exchange: Exchange,
  { site, backend }: GeneratedRequest,
  codings: string,
  hasOwnCookies: boolean,
): readonly Field[] {
  const shared = sharedRequestFields(exchange, site.host, backend);
  const told = hasOwnCookies ? shared : withoutFields(shared, cookieFields);
  const rest = withoutFields(told, ownConditions);
  return codings === "" ? rest : [...rest, ["Accept-Encoding", codings]];
}

export async function answerBase(
  { cache, clock, metrics, variants }: GeneratedDeps,
  exchange: Exchange,
  { request }: Inquiry,
  { base, entries }: Look,
  by: EntryUse["by"],
  status = "hit",
): Promise<boolean> {
  if (base === undefined) return false;
  return await answerEntry(exchange, base, {
    cache,
    metrics,
    variants,
    nowMs: clock.ageMs,
    site: request.site,
    entries,
    by,
    status,
  });
}

export type Fetch = Extract<Reuse, { kind: "fetch" }>;

const ranges: ReadonlySet<string> = new Set(["range", "if-range"]);

/** In the background it goes for all, without anybody's cookies. */
export function planFlight(
  inquiry: Inquiry,
  { sourceNo, mark, base }: Look,
  { conditions, standsIn }: Pick<Fetch, "conditions" | "standsIn">,
  isBackground = false,
): FlightPlan {
  const { request, key, directives, isAuthorized, isRanged } = inquiry;
  const isForWhole = isBackground || conditions.length > 0;
  const asksPart = isRanged && !isForWhole;
  const hasCookies = !isBackground && inquiry.hasOwnCookies();
  const { fields, selecting } = hasCookies ? told(inquiry) : toldOfNone(inquiry);
  return {
    key,
    backend: request.backend,
    path: request.path,
    // A part is cut out of what is stored, once that is confirmed or fetched anew.
    fields: isRanged && !asksPart ? withoutFields(fields, ranges) : fields,
    conditions,
    base,
    standsIn,
    request: { noStore: directives.noStore, isAuthorized, isRanged: asksPart, hasCookies },
    settings: request.route.settings,
    selecting,
    sourceNo,
    mark,
    isBackground,
  };
}

type Told = { readonly fields: readonly Field[]; readonly selecting: Selecting };

function told({ fields, selecting }: Inquiry): Told {
  return { fields: fields(), selecting };
}

/** Selected as asked: by no cookie. */
function toldOfNone({ fields, selecting }: Inquiry): Told {
  return {
    fields: withoutFields(fields(), cookieFields),
    selecting: (name) => (cookieFields.has(name) ? "" : selecting(name)),
  };
}
