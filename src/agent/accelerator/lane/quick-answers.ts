// Answers in one synchronous step what needs no waiting: blocks, redirects, fresh responses that are in memory. Whatever else is asked goes to the pipeline, with
// what was found until then.
//
// The order of what is decided is that of core/serving/request-plan.ts, which is asked here as it is in the pipeline. A plain head can have none of the faults that the
// plan looks for first, but for those of its Host field: they are looked for when the field is met first.

import { requestDirectives } from "../../../core/http/cache-control.ts";
import type { ClientAddress, ClientAddresses } from "../../../core/http/client-address.ts";
import { currentAgeS } from "../../../core/http/http-age.ts";
import { fieldValue } from "../../../core/http/http-fields.ts";
import { selectStored } from "../../../core/http/http-reuse.ts";
import { parseTarget, type RequestTarget } from "../../../core/http/request-path.ts";
import { nextStep, type RequestAnswer } from "../../../core/serving/request-plan.ts";
import type { CacheRoute } from "../../../core/serving/cache-route.ts";
import type { Entry, EntryKey } from "../../cache/entry.ts";
import { entryFields, planEntry, type EntryDeps } from "../cached/entry-answer.ts";
import {
  chooseTaken,
  choiceOf,
  countVariant,
  formFields,
  formingOf,
  namedAmong,
  offerForms,
  possibleForms,
  type BodyChoice,
  type Forms,
} from "../cached/forms.ts";
import {
  formsOf,
  headOf,
  HotTable,
  type HeadKind,
  type HotForms,
  type HotHead,
  type HotRoute,
} from "../cached/hot-table.ts";
import { flatHead } from "../doors/answer.ts";
import type { Connection } from "../doors/exchange.ts";
import { Http2Head } from "../doors/http2-head.ts";
import { dateLine, hasField, headText } from "../doors/head-text.ts";
import { noFile, routeNow, type FileFound } from "../files/site-files.ts";
import {
  hstsOf,
  judgeRequest,
  noteDecision,
  type JudgedVisitor,
  type JudgingDeps,
} from "../judging.ts";
import type { AskedLimits, RequestRates } from "../limits/request-rates.ts";
import {
  blockedAnswer,
  isPlain,
  limitedAnswer,
  plainAnswer,
  type PlainAnswer,
  type PlainStep,
} from "../plain-answer.ts";
import type { ServedSite, ServedUnder } from "../pool/host-table.ts";
import type { StagedStates } from "../pool/staged-states.ts";
import type { RecordGate } from "../records/record-gate.ts";
import type { PlainFields, PlainRequest } from "./head-scanner.ts";
import { heldOf, makeHead, noBytes, type QuickAnswer } from "./quick-answer.ts";
import { QuickFiles } from "./quick-files.ts";
import { RefusalHeads } from "./refusal-heads.ts";
import { QuickRequest, QuickSelector, QuickVisitor, type QuickStored } from "./quick-request.ts";

export type QuickDeps = EntryDeps &
  JudgingDeps & {
    readonly states: StagedStates;
    readonly clients: ClientAddresses;
    readonly gate: Pick<RecordGate, "admitsNow">;
    readonly rates: Pick<RequestRates, "ask">;
    /** The port on which HTTPS is served; null if this program does not serve it. */
    readonly tlsPort: number | null;
    /** The memory for answers, bytes. */
    readonly answersMemoryMax: number;
  };

/** The pipeline has to answer. */
export type QuickPass = {
  readonly kind: "pass";
  /** Whether room for the record was asked for, and whether it was kept for this request. */
  readonly admission: ReturnType<RecordGate["admitsNow"]>;
  readonly judged: JudgedVisitor | undefined;
  /** What the rules of `limits.requests` said, where they were asked: they have counted the request. */
  readonly limit?: AskedLimits | undefined;
  /** What else was found, where the plan has come as far as the cache. */
  readonly found?: QuickFound | undefined;
};

/** Facts of a request that no file answers. They hold in the step in which they were found. */
export type QuickFound = {
  readonly client: ClientAddress | undefined;
  readonly target: RequestTarget;
  readonly rule: CacheRoute;
};

export class QuickAnswers {
  readonly #deps: QuickDeps;
  readonly #table: HotTable;
  readonly #files: QuickFiles;
  readonly #refusals = new RefusalHeads();
  readonly #servable: (entry: Entry) => boolean;

  constructor(deps: QuickDeps) {
    this.#deps = deps;
    this.#table = new HotTable(deps.answersMemoryMax);
    this.#files = new QuickFiles(deps, this.#table);
    this.#servable = (entry) => deps.cache.servable(entry);
  }

  /** To be written before anything else happens: whatever was asked of the cache holds for this step alone. */
  answer(head: PlainRequest, connection: Connection): QuickAnswer | QuickPass {
    const { gate, states, clock, tlsPort } = this.#deps;
    if (head.said.needsPipeline)
      return { kind: "pass", admission: "has-to-wait", judged: undefined };
    const admission = gate.admitsNow();
    if (admission === "has-to-wait") return { kind: "pass", admission, judged: undefined };
    const state = states.current();
    this.#table.use(state);
    const asked = new QuickRequest(head, connection, {
      visitor: this.#visitor(head.said, connection),
      startedWallMs: clock.wallMs(),
      startedMs: clock.steadyMs(),
      tlsPort,
    });
    asked.isClaimed = admission === "claimed";
    const host = this.#table.host(asked.authority) ?? this.#findHost(asked, state);
    if (host === undefined) return { kind: "pass", admission, judged: undefined };
    asked.host = host;
    if (host.host.challenges !== undefined) {
      const challenge = this.#challenge(asked);
      if (challenge !== undefined) return challenge;
    }
    asked.judged = this.#judge(asked, host, state.version);
    const given = this.#given(asked);
    if (given !== undefined) return given;
    const { judged, limit } = asked;
    return { kind: "pass", admission, judged, limit, found: foundOf(asked) };
  }

  /** A challenge is answered before anybody is judged. */
  #challenge(asked: QuickRequest): QuickAnswer | undefined {
    asked.target ??= parseTarget(asked.request.url);
    const step = nextStep(asked);
    if (typeof step === "string" || step.kind !== "challenge") return undefined;
    return this.#plain(asked, step, this.#deps.clock.wallMs());
  }

  #visitor(said: PlainFields, { peer }: Connection): QuickVisitor {
    if (said.found instanceof QuickVisitor) return said.found;
    const client = peer === undefined ? undefined : this.#deps.clients.ofRequest(peer, said.fields);
    const visitor = new QuickVisitor(said, client);
    said.found = visitor;
    return visitor;
  }

  /** Who says the same gets the same verdict while the state is the same. Bots that are in no set are counted, so they are judged each time. */
  #judge(asked: QuickRequest, host: ServedUnder, version: number): JudgedVisitor {
    const { visitor } = asked;
    const { judged: known } = visitor;
    if (known?.served === host && known.version === version) {
      this.#deps.tally.judged(host.domain, known.verdict);
      if (known.verdict.kind === "allow") return known;
      return { ...known, decisionId: noteDecision(this.#deps, asked, host, known.verdict) };
    }
    const judged = judgeRequest(this.#deps, asked, host, version);
    const { reason, set } = judged.verdict;
    visitor.judged = reason === "not-a-bot" || set !== undefined ? judged : undefined;
    return judged;
  }

  /** Undefined: nobody is served, or the plan has something to say of the head. */
  #findHost(
    asked: QuickRequest,
    state: ReturnType<StagedStates["current"]>,
  ): ServedUnder | undefined {
    asked.target = parseTarget(asked.request.url);
    if (nextStep(asked) !== "host") return undefined;
    const found = state.route(asked.authority);
    if (found.kind !== "served") return undefined;
    this.#table.keepHost(asked.authority, found);
    return found;
  }

  #given(asked: QuickRequest): QuickAnswer | undefined {
    const known = this.#table.route(asked.scheme, asked.authority, asked.request.url);
    if (known !== undefined) {
      asked.target = known.target;
      asked.file = known.file;
      asked.rule = known.rule;
      asked.limits = known.limits;
    } else asked.target = targetOf(asked);
    for (;;) {
      const step = nextStep(asked);
      if (typeof step === "string") {
        if (this.#learn(asked, step, known) === "unknown") return undefined;
      } else if (isPlain(step)) return this.#plain(asked, step, this.#deps.clock.wallMs());
      else {
        const answer = this.#byRoute(asked, step, known);
        if (answer !== undefined && known === undefined && asked.route !== undefined)
          this.#table.keepRoute(asked.route);
        return answer;
      }
    }
  }

  #byRoute(
    asked: QuickRequest,
    step: RequestAnswer,
    known: HotRoute | undefined,
  ): QuickAnswer | undefined {
    if (step.kind === "file") return this.#fileOf(asked, known);
    const { stored, route } = asked;
    if (step.kind !== "serve" || stored === undefined || route === undefined) return undefined;
    return isPaced(route, stored.base.size) ? undefined : this.#stored(asked, route, stored);
  }

  #plain(asked: QuickRequest, step: PlainStep, nowMs: number): QuickAnswer {
    const { host, scheme, request, judged } = asked;
    const hstsS = host === undefined ? 0 : hstsOf(host, scheme);
    const hasBody = request.method === "GET";
    if (step.kind === "blocked" && judged !== undefined) {
      const { decisionId, verdict } = judged;
      const answered = (id: string): PlainAnswer => blockedAnswer(verdict.reason, id);
      const told = { decisionId, hstsS, nowMs };
      const made = this.#refusals.make(step.kind, verdict.reason, answered, told);
      return { kind: "answer", asked, ...made, body: hasBody ? made.body : "", whole: undefined };
    }
    if (step.kind === "limited") {
      const { waitS } = step;
      const answered = (id: string): PlainAnswer => limitedAnswer(waitS, id);
      const decisionId = asked.limit?.decisionId ?? "";
      const told = { decisionId, hstsS, nowMs };
      const made = this.#refusals.make(step.kind, `${waitS}`, answered, told);
      return { kind: "answer", asked, ...made, body: hasBody ? made.body : "", whole: undefined };
    }
    const { status, fields, body, cache } = plainAnswer(step, asked);
    const flat = flatHead(fields, hstsS);
    // A site may set its own date.
    const head = `${headText(status, flat)}${hasField(flat, "date") ? "" : dateLine(nowMs)}`;
    // The texts are Unicode: they go out as bytes.
    const bytes = hasBody ? Buffer.from(body).toString("latin1") : "";
    const http2 = new Http2Head(status, flat);
    return { kind: "answer", asked, status, cache, head, body: bytes, whole: undefined, http2 };
  }

  #fileOf(asked: QuickRequest, known: HotRoute | undefined): QuickAnswer | undefined {
    if (asked.file?.kind !== "file") return undefined;
    const { file } = asked.file;
    // Where files are looked for anew, another index file may have taken the place of the one before.
    const isKnown = known?.key.kind === "static" && known.key.path === file.path;
    const route = isKnown ? known : this.#newRoute(asked, "static", file.path, "");
    if (isPaced(route, file.size)) return undefined;
    asked.route = route;
    return this.#files.answer(asked, route, file);
  }

  #learn(
    asked: QuickRequest,
    wanted: Exclude<ReturnType<typeof nextStep>, object>,
    known: HotRoute | undefined,
  ): "known" | "unknown" {
    switch (wanted) {
      case "limit":
        asked.limit = this.#askLimits(asked);
        return "known";
      case "file":
        asked.file = findNow(asked.site, asked.asked.rawPath);
        return asked.file === undefined ? "unknown" : "known";
      case "rule":
        asked.rule = asked.site.routes.cache(asked.asked, asked.request);
        return "known";
      case "stored":
        asked.route = known ?? this.#newGenerated(asked);
        asked.stored = this.#lookUp(asked, asked.route);
        return asked.stored === undefined ? "unknown" : "known";
      default:
        return "unknown";
    }
  }

  #askLimits(asked: QuickRequest): AskedLimits {
    const { request, client, fields, startedWallMs, judged, site } = asked;
    if (judged === undefined) throw new TypeError("nobody was judged yet");
    asked.limits ??= site.limits.requests(asked.asked.rawPath);
    const { method } = request;
    const visitor = { method, client, fields, startedWallMs, judged };
    return this.#deps.rates.ask(asked.limits, visitor);
  }

  #newGenerated(asked: QuickRequest): HotRoute {
    const { rule, asked: target } = asked;
    if (rule === undefined) throw new TypeError("no rule is known yet");
    const query = rule.normalizeQuery(target.rawQuery);
    return this.#newRoute(asked, "generated", target.rawPath, query);
  }

  #newRoute(asked: QuickRequest, kind: EntryKey["kind"], path: string, query: string): HotRoute {
    const { scheme, authority, request, asked: target, site, file = noFile, rule } = asked;
    const { main_domain: domain, host } = site.site;
    const limits = asked.limits ?? site.limits.requests(target.rawPath);
    const pace = site.limits.bytes(target.rawPath);
    const key = { domain, host, kind, path, query };
    const found = site.files.absent === undefined ? undefined : file;
    const way = { target, site, limits, pace, file: found, rule, key };
    return this.#table.newRoute(scheme, authority, request.url, way);
  }

  #lookUp(asked: QuickRequest, route: HotRoute): QuickStored | undefined {
    const { cache, clock } = this.#deps;
    const { key, rule } = route;
    const held = heldOf(cache, route);
    if (held === undefined || rule === undefined) return undefined;
    const selector = new QuickSelector(asked, rule);
    const { base } = selectStored(held.entries, this.#servable, selector, rule);
    // Since when it is stale only the index knows.
    if (base === undefined || selector.isUnsure || cache.softened(base)) return undefined;
    return {
      held,
      base,
      missing: "uri-miss",
      request: nothingAsked,
      settings: rule.forAnswer(base.headers).settings,
      confirmed: cache.confirmed(key.domain),
      nowMs: clock.ageMs(),
    };
  }

  /** Answers with a stored response that the plan has found fresh in this step. */
  #stored(
    asked: QuickRequest,
    route: HotRoute,
    { base, held, nowMs }: QuickStored,
  ): QuickAnswer | undefined {
    const { cache, metrics } = this.#deps;
    const { request, site } = asked;
    const forms =
      formsOf(route, base) ?? this.#table.keepForms(route, base, formsUnder(site, route, base));
    const { possible } = forms;
    const entry =
      possible.kind === "none" ? base : this.#chooseForm(asked, possible, base, held.entries);
    if (entry !== base && !cache.servable(entry)) return undefined;
    const kind = this.#kindOf(asked, forms, entry, nowMs);
    const { status, hasBody } = kind;
    const ageS = Math.max(0, currentAgeS(base, nowMs));
    const known = headOf(forms, kind, ageS);
    const asText = request.httpVersion === "2" ? undefined : known?.body;
    const body = asText ?? (hasBody ? (cache.held(entry) ?? known?.body) : noBytes);
    if (body === undefined) return undefined;
    const making = { base, entry, kind, ageS, body };
    const { text: head, whole, http2 } = known ?? this.#makeHead(asked, route, forms, making);
    cache.noteHit(held, entry);
    if (hasBody) countVariant(metrics, base, entry);
    return { kind: "answer", asked, status, cache: "hit", head, body, whole, http2 };
  }

  /** What a visitor's conditions come to is the same for the same response. */
  #kindOf(
    { request, visitor }: QuickRequest,
    forms: HotForms,
    entry: Entry,
    nowMs: number,
  ): HeadKind {
    const { conditional: known } = visitor;
    if (known?.forms === forms && known.entry === entry && known.method === request.method)
      return known.kind;
    const kind = kindOf(request, forms, forms.base, entry, nowMs);
    if (request.said.isConditional)
      visitor.conditional = { forms, entry, method: request.method, kind };
    return kind;
  }

  #chooseForm(
    { visitor }: QuickRequest,
    possible: Forms,
    base: Entry,
    entries: readonly Entry[],
  ): Entry {
    const { variant, wanted } = chooseTaken(this.#deps.cache, possible, visitor, base, entries);
    if (wanted.length > 0) offerForms(this.#deps, possible, base, wanted);
    return variant ?? base;
  }

  #makeHead(
    { site, scheme, host }: QuickRequest,
    route: HotRoute,
    forms: HotForms,
    { base, entry, kind, ageS, body }: HeadMaking,
  ): HotHead {
    const { headers } = base;
    const choice: BodyChoice = {
      entry,
      headers: formFields(headers, kind.sent),
      known: formFields(headers, kind.named),
      forms: forms.possible,
    };
    const plan = { status: kind.status, range: undefined };
    const rule = route.rule?.forAnswer(headers);
    const browserTtlS = rule?.settings.browser_ttl_s ?? null;
    const edits = rule?.answerEdits(kind.status) ?? site.site.headers;
    const told = { edits, base, ageS, said: "hit", browserTtlS, isOutdated: false };
    const fields = entryFields(told, choice, plan);
    const flat = flatHead(fields, host === undefined ? 0 : hstsOf(host, scheme));
    const made = makeHead({ ...kind, ageS }, flat, body, this.#deps.clock.wallMs());
    // A stored response has its origin's date, unless the site removes it.
    if (hasField(flat, "date")) this.#table.keepHead(route, forms, made);
    return made;
  }
}

function targetOf({ target, request, host }: QuickRequest): RequestTarget | undefined {
  const sent = target ?? parseTarget(request.url);
  return sent && (host?.compiled?.routes.target(sent, request.method) ?? sent);
}

/** Undefined: the plan has not come as far as the cache. */
function foundOf({ client, target, file, rule }: QuickRequest): QuickFound | undefined {
  if (target === undefined || rule === undefined || file?.kind !== "none") return undefined;
  return { client, target, rule };
}

function formsUnder({ site }: ServedSite, { rule, target }: HotRoute, base: Entry): Forms {
  return possibleForms(formingOf(site, rule, base.headers), base, target.pictureWidth);
}

/** Whether a rule of `limits.bytes` slows down the body, which is a matter of the pipeline. */
function isPaced({ pace }: HotRoute, size: number): boolean {
  return pace !== undefined && size > pace.afterBytes;
}

/** Undefined: it takes a look at the disk. */
function findNow({ files, site }: ServedSite, rawPath: string): FileFound | undefined {
  if (files.absent?.has(rawPath) === true) return noFile;
  const found = routeNow(files, rawPath, site.index);
  if (found === "has-to-wait") return undefined;
  if (found.kind === "none") files.absent?.add(rawPath);
  return found;
}

type HeadMaking = {
  readonly base: Entry;
  readonly entry: Entry;
  readonly kind: HeadKind;
  readonly ageS: number;
  readonly body: string | Uint8Array;
};

/** Which head answers: the visitor's conditions may know another form than the one that is sent. */
function kindOf(
  request: PlainRequest,
  { possible }: HotForms,
  base: Entry,
  entry: Entry,
  nowMs: number,
): HeadKind {
  const sent = entry.form;
  const isRead = request.method === "GET";
  if (!request.said.isConditional) {
    const hasBody = isRead && base.status !== 204;
    return { status: base.status, sent, named: sent, hasBody };
  }
  const choice = choiceOf(request, base, entry, possible);
  const { status } = planEntry(request, base.status, choice, nowMs);
  if (status !== 304) return { status, sent, named: sent, hasBody: isRead && status !== 204 };
  const { fields } = request;
  const etag = fieldValue(base.headers, "etag");
  const named = namedAmong(possible, fields, etag, sent);
  return { status, sent, named, hasBody: false };
}

/** A plain head has no field that says anything else. */
const nothingAsked = requestDirectives([]);
