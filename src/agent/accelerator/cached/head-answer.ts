// HEAD that no stored response answers: asked of the origin, and what it says of the stored response to GET taken over (RFC 9111 §4.3.5).

import { mimeOf } from "../../../core/http/content-coding.ts";
import { fieldValue, type Field } from "../../../core/http/http-fields.ts";
import { planHeadRefresh, planRefresh, type RefreshPlan } from "../../../core/http/http-refresh.ts";
import { isOriginError } from "../../../core/http/http-reuse.ts";
import type { Entry } from "../../cache/entry.ts";
import { passedForm } from "./body-choice.ts";
import type { Attempt } from "../doors/answer.ts";
import { answerEntry } from "./entry-answer.ts";
import { shortly } from "./fill.ts";
import { dropStored, type FlightPlan } from "./flight.ts";
import type { GeneratedDeps } from "./flight-answer.ts";
import { planFlight, type Fetch, type Inquiry, type Look } from "./inquiry.ts";
import { passedFields, relay } from "../origin/origin-answer.ts";
import { answerFailure, askOrigin, discard } from "../origin/origin-ask.ts";
import type { OriginAnswer } from "../origin/origin-pools.ts";
import { ending } from "../origin/passing.ts";

export async function answerHead(
  deps: GeneratedDeps,
  inquiry: Inquiry,
  look: Look,
  reuse: Fetch,
): Promise<Attempt> {
  const { exchange, key, backend, path } = inquiry;
  const plan = planFlight(inquiry, look, reuse);
  const fields = [...plan.fields, ...plan.conditions];
  const { stop } = exchange;
  const outgoing = { method: "HEAD", path, fields, body: undefined, stop };
  const asked = await askOrigin(deps, key.domain, backend, outgoing);
  exchange.originMs = asked.tookMs;
  if (stop.aborted) return "answered";
  const isFailed = !asked.ok || isOriginError(asked.answer.status);
  if (isFailed && reuse.standsIn) {
    if (asked.ok) discard(asked.answer);
    const status = "fwd=stale; detail=stale-if-error";
    if ((await answerEntry(deps, inquiry, look, "stale", status)) === "answered") return "answered";
  }
  if (!asked.ok) {
    answerFailure(exchange, asked.kind);
    return "answered";
  }
  const { answer } = asked;
  using _ = ending(answer, deps, exchange);
  const kept = await takeOver(deps, plan, answer);
  if (answer.status === 304 && plan.conditions.length > 0) {
    if (kept === undefined) return "nothing-sent";
    const confirmed = { ...look, base: kept };
    const status = `fwd=${reuse.fwd}; fwd-status=304`;
    return await answerEntry(deps, inquiry, confirmed, "confirmed", status);
  }
  await relayHead(inquiry, answer, `fwd=${reuse.fwd}`);
  return "answered";
}

async function relayHead(
  { exchange, site }: Inquiry,
  answer: OriginAnswer,
  status: string,
): Promise<void> {
  const { isNotModified, fields } = passedForm(exchange, site, answer.status, passedFields(answer));
  await relay(exchange, site, answer, {
    status: isNotModified ? 304 : answer.status,
    fields,
    cacheStatus: isNotModified ? `${status}; fwd-status=200` : status,
  });
}

/** The stored response as it is from now on; undefined where it is not to be used. Errors say nothing of it: some origins know no HEAD. */
async function takeOver(
  deps: GeneratedDeps,
  { key, base, request, settings }: FlightPlan,
  answer: OriginAnswer,
): Promise<Entry | undefined> {
  if (base === undefined || base.status !== 200) return undefined;
  const facts = { ...answer, fields: passedFields(answer) };
  let plan: RefreshPlan | undefined;
  if (answer.status === 304) plan = planRefresh(base, facts, request, settings);
  else if (answer.status === 200) plan = planHeadRefresh(base, facts, request, settings);
  if (plan === undefined || plan.kind === "own") return undefined;
  if (plan.kind === "drop") {
    await dropStored(deps, [key]);
    return undefined;
  }
  const headers: readonly Field[] = plan.kind === "refresh" ? plan.headers : base.headers;
  const refreshed = {
    headers,
    mime: mimeOf(fieldValue(headers, "content-type")),
    storedAtMs: plan.kind === "refresh" ? Math.floor(answer.receivedAtMs) : base.storedAtMs,
    initialAgeS: plan.kind === "refresh" ? plan.initialAgeS : base.initialAgeS,
    // Of another representation: what is stored has to be asked about before it is used again.
    freshForS: plan.kind === "refresh" ? plan.freshForS : 0,
  };
  if (plan.kind === "other" || plan.isKept) await shortly(deps.cache.refresh(base, refreshed));
  return plan.kind === "refresh" ? { ...base, ...refreshed } : undefined;
}
