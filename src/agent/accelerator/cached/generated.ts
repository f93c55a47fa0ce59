// What an origin makes: passed on where the cache has no part in it, else answered from the cache or from a fetch that others may share.

import { conditionsFor, mayServeCookies } from "../../../core/http/http-cache.ts";
import { passReason } from "../../../core/http/http-pass.ts";
import { variesByCookie } from "../../../core/http/http-vary.ts";
import { decideReuse } from "../../../core/http/http-reuse.ts";
import type { RequestTarget } from "../../../core/http/request-path.ts";
import type { Entry, EntryKey } from "../../cache/entry.ts";
import { sendText } from "../doors/answer.ts";
import type { ResponseCache } from "./cache-port.ts";
import { selectEntry } from "./entry-answer.ts";
import type { Exchange } from "../doors/exchange.ts";
import { answerByFlight, answerHead } from "./fetched-answer.ts";
import {
  answerBase,
  inquire,
  planFlight,
  type GeneratedDeps,
  type GeneratedRequest,
  type Inquiry,
  type Look,
} from "./inquiry.ts";
import { originFields } from "../origin/origin-request.ts";
import { pass } from "../origin/passing.ts";

/** An entry that is cleared between lookup and head, or a fetch that turns out not to be shared, costs one; the last one asks the origin alone. */
const looksMax = 3;

export async function answerGenerated(
  deps: GeneratedDeps,
  exchange: Exchange,
  asked: Omit<GeneratedRequest, "path">,
): Promise<void> {
  const { site, target, route } = asked;
  const loneMark = hasLoneMark(exchange, target);
  const query = loneMark || target.rawQuery !== "" ? `?${target.rawQuery}` : "";
  const request = { ...asked, path: `${target.rawPath}${query}` };
  const key: EntryKey = {
    domain: site.main_domain,
    host: site.host,
    kind: "generated",
    path: target.rawPath,
    query: route.normalizeQuery(target.rawQuery),
  };
  const { method, fields: asReceived, hasBody } = exchange;
  const reason = passReason({ method, fields: asReceived, hasBody, hasLoneMark: loneMark }, route);
  if (reason !== undefined) {
    exchange.cache = "pass";
    deps.metrics.accel_agent_cache_passed_total.inc({ domain: key.domain, reason });
    const fields = originFields(exchange, site.host, asked.backend);
    await pass(deps, exchange, request, fields, { key, reason });
    return;
  }
  exchange.cache = "miss";
  const inquiry = inquire(exchange, request, key);
  for (let look = 1; ; look++) if (await answerOnce(deps, exchange, inquiry, look)) return;
}

/** See `passReason`. */
function hasLoneMark({ request }: Exchange, { rawQuery }: RequestTarget): boolean {
  return rawQuery === "" && (request.url ?? "").includes("?");
}

/** False: nothing was sent, and another look may find something else. */
async function answerOnce(
  deps: GeneratedDeps,
  exchange: Exchange,
  inquiry: Inquiry,
  lookNo: number,
): Promise<boolean> {
  const { cache, clock } = deps;
  const { key, directives, isAuthorized } = inquiry;
  const isLast = lookNo >= looksMax;
  const sourceNo = cache.sourceNo();
  const mark = cache.clearMark(key);
  const entries = cache.find(key);
  const found = isLast ? undefined : selectEntry(cache, entries, inquiry.selecting, isAuthorized);
  const stored = found && inquiry.request.route.inForce(found);
  const base = stored !== undefined && mayAnswer(stored, inquiry) ? stored : undefined;
  const look: Look = { sourceNo, mark, entries, base };
  const reuse = decideReuse(base, {
    request: directives,
    settings: inquiry.request.route.settings,
    missing: missing(cache, entries, isAuthorized || stored !== base),
    confirmed: cache.confirmed(key.domain),
    nowMs: clock.ageMs(),
  });
  if (reuse.kind === "serve") return await answerBase(deps, exchange, inquiry, look, "fresh");
  if (reuse.kind === "serve-stale")
    return await answerStale(deps, exchange, inquiry, look, reuse.refreshes);
  if (reuse.kind === "refuse") {
    sendText(exchange, 504, "Nothing is stored for this request, and it asked for nothing else.");
    return true;
  }
  return exchange.method === "HEAD"
    ? await answerHead(deps, exchange, inquiry, look, reuse)
    : await answerByFlight(deps, exchange, inquiry, look, reuse, isLast);
}

/** Cookies need the origin's word that what is stored is for all: a lifetime, or that it says so. Under a rule's lifetime none comes here. */
function mayAnswer(stored: Entry, { hasOwnCookies }: Inquiry): boolean {
  return stored.freshForS > 0 || !hasOwnCookies() || mayServeCookies(stored.headers);
}

/** In the words of RFC 9211: there is nothing; nothing for these fields; or what there is is not for these credentials. */
function missing(
  cache: ResponseCache,
  entries: readonly Entry[],
  isForOthers: boolean,
): "uri-miss" | "vary-miss" | "request" {
  if (!entries.some((entry) => cache.servable(entry))) return "uri-miss";
  return isForOthers ? "request" : "vary-miss";
}

async function answerStale(
  deps: GeneratedDeps,
  exchange: Exchange,
  inquiry: Inquiry,
  look: Look,
  refreshes: boolean,
): Promise<boolean> {
  const { domain } = inquiry.key;
  if (look.base !== undefined && refreshes && mayBeAskedAgain(inquiry, look.base)) {
    const conditions = conditionsFor(look.base.status, look.base.headers);
    deps.flights.refresh(planFlight(inquiry, look, { conditions, standsIn: true }, true));
  }
  const reason = refreshes ? "while_revalidate" : "asked";
  deps.metrics.accel_agent_cache_stale_total.inc({ domain, reason });
  return await answerBase(deps, exchange, inquiry, look, "stale");
}

/** Without the visitor: not with his own credentials, not for what is kept for his cookies alone, and not where he wants nothing of it kept. */
function mayBeAskedAgain(
  { isAuthorized, hasOwnCookies, directives }: Inquiry,
  { headers }: Entry,
): boolean {
  if (isAuthorized || directives.noStore) return false;
  return !variesByCookie(headers) || !hasOwnCookies();
}
