// A visitor's answer out of a fetch: one's own, or one that was under way for another visitor. Nobody waits without end, and nobody is given what
// belongs to another. HEAD is asked of the origin alone, and what it says of the stored response to GET is taken over (RFC 9111 §4.3.5).

import { withEdits } from "../../../core/http/header-edits.ts";
import {
  decideReuse,
  isOriginError,
  mayAnswer,
  selectStored,
  type Candidate,
} from "../../../core/http/http-reuse.ts";
import { isVariantFor } from "../../../core/http/http-vary.ts";
import { forBrowsers } from "../../../core/http/browser-lifetime.ts";
import { planStore } from "../../../core/http/http-cache.ts";
import type { AnswerRule } from "../../../core/serving/cache-route.ts";
import { cacheStatus, headSoon, sendBody, writeHead, type Attempt } from "../doors/answer.ts";
import { chooseVariant, offerForms, passedForm, type Forms } from "./forms.ts";
import type { Exchange } from "../doors/exchange.ts";
import { answerEntry, type EntryDeps } from "./entry-answer.ts";
import type { Flight, FlightDeps, FlightPlan, Landing, SharedAnswer } from "./flight.ts";
import type { Flights } from "./flights.ts";
import { planFlight, type Fetch, type Inquiry, type Look } from "./inquiry.ts";
import {
  answerFailure,
  askOrigin,
  discard,
  passedFields,
  relay,
  type Asked,
  OriginEnding,
} from "../origin/origin-answer.ts";
import type { OriginAnswer } from "../origin/origin-pools.ts";
import { mimeOf } from "../../../core/http/content-coding.ts";
import { fieldValue, type Field } from "../../../core/http/http-fields.ts";
import {
  planHeadRefresh,
  planRefresh,
  typeAfter,
  type RefreshPlan,
} from "../../../core/http/http-refresh.ts";
import type { Entry } from "../../cache/entry.ts";
import { dropStored, shortly } from "./fill.ts";
import { storedTags } from "./stored-head.ts";

export type GeneratedDeps = FlightDeps & EntryDeps & { readonly flights: Flights };

/** A visitor who has waited so long for another's answer asks alone. */
const joinWaitMs = 10_000;

/** `not-shared`: nothing was sent, and the fetch that was under way is not for this visitor. */
type Ride = Attempt | "not-shared";

export async function answerByFlight(
  deps: GeneratedDeps,
  inquiry: Inquiry,
  look: Look,
  reuse: Fetch,
): Promise<Attempt> {
  const shared = await ride(deps, inquiry, look, reuse, inquiry.passesOver);
  if (shared !== "not-shared") return shared;
  const alone = await ride(deps, inquiry, look, reuse, true);
  return alone === "not-shared" ? "nothing-sent" : alone;
}

async function ride(
  deps: GeneratedDeps,
  inquiry: Inquiry,
  look: Look,
  reuse: Fetch,
  isAlone: boolean,
): Promise<Ride> {
  const { flights } = deps;
  const { exchange, key, directives, selecting, backend, rule } = inquiry;
  const mayShare =
    !isAlone &&
    !inquiry.isAuthorized &&
    !inquiry.isRanged &&
    !directives.noStore &&
    flights.isShared(key);
  // A request that does not take what is stored is not given a fetch either that began before it.
  const takesOthers = mayShare && reuse.fwd !== "request" && !directives.noCache;
  const wanted = { key, mark: look.mark, backend, settings: rule.settings, selecting };
  const other = takesOthers ? flights.find(wanted) : undefined;
  const flight = other ?? flights.start(planFlight(inquiry, look, reuse), mayShare);
  // Here and below without `using`, for which V8 calls its runtime three times: 1 % of what an uncached answer costs.
  const seat = flight.join();
  try {
    const { promise, resolve } = Promise.withResolvers<Ride>();
    whenLanded(flight, exchange, other === undefined ? undefined : joinWaitMs, (landing) =>
      resolve(
        alight(deps, inquiry, look, reuse, { flight, landing, isJoined: other !== undefined }),
      ),
    );
    return await promise;
  } finally {
    seat[Symbol.dispose]();
  }
}

type Landed = {
  readonly flight: Flight;
  /** `left`: it took too long, or the visitor has gone. */
  readonly landing: Landing | "left";
  readonly isJoined: boolean;
};

/** Answers with what came of a flight. */
async function alight(
  deps: GeneratedDeps,
  inquiry: Inquiry,
  look: Look,
  reuse: Fetch,
  { flight, landing, isJoined }: Landed,
): Promise<Ride> {
  const { exchange, key } = inquiry;
  if (exchange.stop.aborted) return "answered";
  if (landing === "left") return "not-shared";
  exchange.originMs = flight.tookMs;
  if (isFailure(landing) && reuse.standsIn) {
    if (!isJoined && landing.kind === "own") discard(landing.answer);
    if ((await standIn(deps, inquiry, look, landing)) === "answered") return "answered";
    // What was to stand in was cleared meanwhile, and the origin's words are gone too.
    if (landing.kind === "own") return "nothing-sent";
  }
  if (landing.kind === "failed") {
    answerFailure(exchange, landing.failure);
    return "answered";
  }
  if (isJoined) {
    if (!mayHave(deps, inquiry, landing)) return "not-shared";
    deps.metrics.accel_agent_cache_collapsed_total.inc({ domain: key.domain });
  }
  return await hand(deps, inquiry, look, landing, {
    flight,
    status: `fwd=${reuse.fwd}`,
    isCollapsed: isJoined,
  });
}

/** Tells once: in the step in which it is known what came of the flight, or when it took too long or the visitor has gone. */
function whenLanded(
  flight: Flight,
  { stop }: Exchange,
  waitMs: number | undefined,
  told: (landing: Landing | "left") => void,
): void {
  let isTold = false;
  const tell = (landing: Landing | "left"): void => {
    if (isTold) return;
    isTold = true;
    clearTimeout(timer);
    stop.removeEventListener("abort", leave);
    told(landing);
  };
  const leave = (): void => tell("left");
  const timer = waitMs === undefined ? undefined : setTimeout(leave, waitMs);
  stop.addEventListener("abort", leave);
  flight.onLanded(tell);
}

function isFailure(landing: Landing): boolean {
  return (
    landing.kind === "failed" || (landing.kind === "own" && isOriginError(landing.answer.status))
  );
}

/** Answers with the stored response in the place of an error (stale-if-error). */
async function standIn(
  deps: GeneratedDeps,
  inquiry: Inquiry,
  look: Look,
  landing: Landing,
): Promise<Attempt> {
  const failed = landing.kind === "own" ? `; fwd-status=${landing.answer.status}` : "";
  const status = `fwd=stale${failed}; detail=stale-if-error`;
  deps.metrics.accel_agent_cache_stale_total.inc({
    domain: inquiry.key.domain,
    reason: "if_error",
  });
  return await answerEntry(deps, inquiry, look, "stale", status);
}

/** Whether what came of another's fetch answers this request too: as if it had been stored before. */
function mayHave(deps: GeneratedDeps, inquiry: Inquiry, landing: Landing): boolean {
  if (landing.kind === "failed" || landing.kind === "own") return false;
  if (landing.kind === "shared" && !landing.body.isJoinable) return false;
  const stored: Candidate & { readonly vary: Readonly<Record<string, string>> | null } =
    landing.kind === "shared" ? landing.meta : landing.entry;
  const { settings } = inquiry.rule.forAnswer(stored.headers);
  const reuse = decideReuse(stored, {
    request: inquiry.directives,
    settings,
    missing: "uri-miss",
    // The origin has just said it.
    confirmed: true,
    nowMs: deps.clock.ageMs(),
  });
  return (
    isVariantFor(stored.vary, inquiry.selecting) &&
    reuse.kind === "serve" &&
    mayAnswer(stored, inquiry, settings)
  );
}

type How = { readonly flight: Flight; readonly status: string; readonly isCollapsed: boolean };

async function hand(
  deps: GeneratedDeps,
  inquiry: Inquiry,
  look: Look,
  landing: Exclude<Landing, { kind: "failed" }>,
  { flight, status, isCollapsed }: How,
): Promise<Attempt> {
  const collapsed = isCollapsed ? "; collapsed" : "";
  if (landing.kind === "confirmed") {
    const confirmed = { ...look, base: landing.entry };
    const said = `${status}; fwd-status=304${collapsed}`;
    return await answerEntry(deps, inquiry, confirmed, "confirmed", said);
  }
  if (landing.kind === "own") {
    const origin = new OriginEnding(landing.answer, deps, inquiry.exchange);
    try {
      const passed = passedFields(landing.answer);
      const isPart = inquiry.isRanged;
      inquiry.exchange.cache = "pass";
      const said = `${status}; detail=${landing.reason}`;
      await relayOwn(inquiry, landing.answer, { passed, origin, status: said, isPart });
    } finally {
      origin[Symbol.dispose]();
    }
  } else {
    // No await between this and the head: a clear that is known by then is heeded.
    const stored = landing.mayStore() ? "; stored" : "";
    const said = `${status}${isCollapsed ? collapsed : stored}`;
    await sendShared(deps, inquiry, flight, landing, said);
  }
  return "answered";
}

type Relayed = {
  readonly passed: readonly Field[];
  readonly origin: OriginEnding;
  readonly status: string;
  readonly isPart: boolean;
};

/** The origin's own answer for this visitor alone, or 304 where the visitor has that representation already. */
async function relayOwn(
  inquiry: Inquiry,
  answer: OriginAnswer,
  { passed, origin, status: said, isPart }: Relayed,
): Promise<void> {
  const { exchange } = inquiry;
  const { isNotModified, fields } = isPart
    ? { isNotModified: false, fields: passed }
    : passedForm(inquiry.asking, inquiry.formingOf(answer.fields), answer.status, passed);
  const status = isNotModified ? 304 : answer.status;
  const { answerEdits } = inquiry.rule.forAnswer(answer.fields);
  await relay(exchange, answerEdits(status), answer, {
    status,
    fields,
    cacheStatus: isNotModified ? `${said}; fwd-status=200` : said,
    origin,
  });
}

async function sendShared(
  deps: GeneratedDeps,
  inquiry: Inquiry,
  flight: Flight,
  { fields: said, meta, body }: SharedAnswer,
  status: string,
): Promise<void> {
  const { exchange } = inquiry;
  const rule = inquiry.rule.forAnswer(meta.headers);
  const passed = fetchedForBrowsers(rule, meta.status, said);
  const forming = inquiry.formingOf(meta.headers);
  const { isNotModified, fields, forms } = passedForm(inquiry.asking, forming, meta.status, passed);
  if (isNotModified) {
    flight.keep();
    writeHead(exchange, 304, [
      ...withEdits(fields, rule.answerEdits(304)),
      cacheStatus(`${status}; fwd-status=200`),
    ]);
    exchange.response.end();
    return;
  }
  const pieces = meta.status === 204 ? undefined : body.read(exchange.stop);
  const told = withEdits(fields, rule.answerEdits(meta.status));
  writeHead(exchange, meta.status, [...told, cacheStatus(status)]);
  await sendBody(exchange, pieces, pieces === undefined ? undefined : headSoon(exchange));
  if (forms.kind === "images") offerStored(deps, inquiry, forms);
}

/** A picture that was just stored gets its forms now, for the next visitor. */
function offerStored(deps: GeneratedDeps, inquiry: Inquiry, forms: Forms): void {
  const { cache } = deps;
  const { key, rule, asking } = inquiry;
  const entries = cache.find(key);
  const { base } = selectStored(entries, (one) => cache.servable(one), inquiry, rule);
  if (base === undefined) return;
  const { wanted } = chooseVariant(cache, asking, forms, base, entries);
  if (wanted.length > 0) offerForms(deps, forms, base, wanted);
}

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
  const { onInterim } = plan;
  const outgoing = { method: "HEAD", path, fields, body: undefined, stop, onInterim };
  const { promise, resolve } = Promise.withResolvers<Asked>();
  askOrigin(deps, key.domain, backend, outgoing, resolve);
  const asked = await promise;
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
  using origin = new OriginEnding(answer, deps, exchange);
  const kept = await takeOver(deps, plan, answer);
  if (answer.status === 304 && plan.conditions.length > 0) {
    if (kept === undefined) return "nothing-sent";
    const confirmed = { ...look, base: kept };
    const status = `fwd=${reuse.fwd}; fwd-status=304`;
    return await answerEntry(deps, inquiry, confirmed, "confirmed", status);
  }
  const passed = headForBrowsers(inquiry, plan, answer);
  await relayOwn(inquiry, answer, { passed, origin, status: `fwd=${reuse.fwd}`, isPart: false });
  return "answered";
}

/** As whoever asks by GET is told it. */
function headForBrowsers(
  inquiry: Inquiry,
  { request }: FlightPlan,
  answer: OriginAnswer,
): readonly Field[] {
  const passed = passedFields(answer);
  const rule = inquiry.rule.forAnswer(answer.fields);
  if (rule.settings.browser_ttl_s === null || !planStore(request, answer, rule.settings).store)
    return passed;
  return fetchedForBrowsers(rule, answer.status, passed);
}

/** Returns the fields of a response that was just fetched as browsers are told them. A cache between the origin and here may have said an age. */
function fetchedForBrowsers(
  { settings: { browser_ttl_s: browserTtlS } }: AnswerRule,
  status: number,
  fields: readonly Field[],
): readonly Field[] {
  if (browserTtlS === null) return fields;
  const ageS = Number(/^\d{1,10}/.exec(fieldValue(fields, "age") ?? "")?.[0] ?? 0);
  return forBrowsers(fields, { status, ageS, browserTtlS });
}

/** The stored response as it is from now on; undefined where it is not to be used. Errors say nothing of it: some origins know no HEAD. */
async function takeOver(
  deps: GeneratedDeps,
  { key, base, request, settingsOf, sourceNo: confirmedNo }: FlightPlan,
  answer: OriginAnswer,
): Promise<Entry | undefined> {
  if (base === undefined || base.status !== 200) return undefined;
  const facts = { ...answer, fields: passedFields(answer) };
  const settings = settingsOf(typeAfter(base, facts));
  let plan: RefreshPlan | undefined;
  if (answer.status === 304) plan = planRefresh(base, facts, request, settings);
  else if (answer.status === 200) plan = planHeadRefresh(base, facts, request, settings);
  if (plan === undefined || plan.kind === "own") return undefined;
  const found = storedTags(deps, key.domain, answer);
  if (plan.kind === "drop" || found === undefined) {
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
    confirmedNo,
    ...(plan.kind === "refresh" && found),
  };
  if (plan.kind === "other" || plan.isKept) await shortly(deps.cache.refresh(base, refreshed));
  return plan.kind === "refresh" ? { ...base, ...refreshed } : undefined;
}
