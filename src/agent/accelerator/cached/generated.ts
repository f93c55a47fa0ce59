// What an origin makes and the cache has a part in: one look at what is stored, and what the plan says of it carried out.

import { staleSince } from "../../../core/http/http-age.ts";
import { conditionsFor } from "../../../core/http/http-cache.ts";
import { variesByCookie } from "../../../core/http/http-vary.ts";
import { selectStored, type Reuse } from "../../../core/http/http-reuse.ts";
import type { Entry } from "../../cache/entry.ts";
import type { Attempt } from "../doors/answer.ts";
import { answerEntry } from "./entry-answer.ts";
import { answerByFlight, answerHead, type GeneratedDeps } from "./fetched-answer.ts";
import { planFlight, type Inquiry, type Look } from "./inquiry.ts";

/** Looks into the cache, in one synchronous step. */
export function lookUp({ cache, clock }: GeneratedDeps, inquiry: Inquiry): Look {
  const { key, rule } = inquiry;
  const invalidationMark = cache.invalidationMark(key);
  const mark = cache.clearMark(key);
  const sourceNo = cache.sourceNo();
  const entries = cache.find(key);
  const selected = selectStored(entries, (one) => cache.servable(one), inquiry, rule);
  const nowMs = clock.ageMs();
  const { base: found, missing } = selected;
  const softenedMs = found && cache.softenedSinceMs(found);
  const isSoftened = softenedMs !== undefined;
  const base = found && isSoftened ? staleSince(found, softenedMs, nowMs) : found;
  return {
    isSoftened,
    sourceNo,
    mark,
    invalidationMark,
    entries,
    base,
    missing,
    request: inquiry.directives,
    settings: (base === undefined ? rule : rule.forAnswer(base.headers)).settings,
    confirmed: cache.confirmed(key.domain),
    nowMs,
  };
}

export async function answerGenerated(
  deps: GeneratedDeps,
  inquiry: Inquiry,
  look: Look,
  reuse: Exclude<Reuse, { kind: "refuse" }>,
): Promise<Attempt> {
  switch (reuse.kind) {
    case "serve":
      return await answerEntry(deps, inquiry, look, "fresh");
    case "serve-stale":
      return await answerStale(deps, inquiry, look, reuse.refreshes);
    case "fetch":
      return inquiry.exchange.method === "HEAD"
        ? await answerHead(deps, inquiry, look, reuse)
        : await answerByFlight(deps, inquiry, look, reuse);
    default:
      return reuse satisfies never;
  }
}

async function answerStale(
  deps: GeneratedDeps,
  inquiry: Inquiry,
  look: Look,
  refreshes: boolean,
): Promise<Attempt> {
  const { domain } = inquiry.key;
  if (look.base !== undefined && refreshes && mayBeAskedAgain(inquiry, look.base)) {
    const conditions = conditionsFor(look.base.status, look.base.headers);
    deps.flights.refresh(planFlight(inquiry, look, { conditions, standsIn: true }, true));
  }
  const reason = refreshes ? "while_revalidate" : "asked";
  deps.metrics.accel_agent_cache_stale_total.inc({ domain, reason });
  return await answerEntry(deps, inquiry, look, "stale");
}

/**
 * Returns whether the origin may be asked without the visitor: not with his own credentials, not for what is
 * kept for his cookies alone, and not if he wants nothing of it kept.
 */
function mayBeAskedAgain(inquiry: Inquiry, { headers }: Entry): boolean {
  if (inquiry.isAuthorized || inquiry.directives.noStore) return false;
  return !variesByCookie(headers) || !inquiry.hasOwnCookies;
}
