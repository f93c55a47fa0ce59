// Answers in one synchronous step what needs no waiting: blocks, redirects, fresh responses that are in memory. Whatever else is asked goes to the pipeline, with
// what was found until then.
//
// The order of what is decided is that of core/serving/request-plan.ts, which is asked here as it is in the pipeline. A plain head can have none of the faults that the
// plan looks for first, but for those of its Host field: they are looked for when the field is met first.

import { requestDirectives } from "../../../core/http/cache-control.ts";
import type { ClientAddress, ClientAddresses, Scheme } from "../../../core/http/client-address.ts";
import {
  acceptedCodings,
  codedFields,
  namedCoding,
  type Coding,
} from "../../../core/http/content-coding.ts";
import { currentAgeS } from "../../../core/http/http-age.ts";
import { fieldValue } from "../../../core/http/http-fields.ts";
import { selectStored, type Selector } from "../../../core/http/http-reuse.ts";
import { normalAcceptEncoding, selectingBy, type Selecting } from "../../../core/http/http-vary.ts";
import { parseTarget, type RequestTarget } from "../../../core/http/request-path.ts";
import {
  nextStep,
  nothingKnown,
  type RequestFacts,
  type StoredFact,
} from "../../../core/serving/request-plan.ts";
import { queryRuleName, type CacheRoute } from "../../../core/serving/site-routes.ts";
import type { RequestRecord } from "../../../wire/request-log.ts";
import type { Entry } from "../../cache/entry.ts";
import { entryFields, planEntry, type EntryDeps } from "../cached/entry-answer.ts";
import {
  chooseCoded,
  choiceOf,
  countVariant,
  hasVariants,
  readAgain,
  type BodyChoice,
} from "../cached/forms.ts";
import {
  formsOf,
  headOf,
  HotTable,
  type HeadKind,
  type HotForms,
  type HotRoute,
} from "../cached/hot-table.ts";
import { flatHead } from "../doors/answer.ts";
import type { Connection } from "../doors/exchange.ts";
import { dateLine, hasField, headText } from "../doors/head-text.ts";
import { noFile } from "../files/site-files.ts";
import { hstsOf, judgeRequest, type JudgedVisitor, type JudgingDeps } from "../judging.ts";
import { askedScheme, isToldAsSent, visitorScheme } from "../origin/origin-request.ts";
import { isPlain, plainAnswer, type PlainAsked, type PlainStep } from "../plain-answer.ts";
import type { ServedSite, ServedUnder } from "../pool/host-table.ts";
import type { StagedStates } from "../pool/staged-states.ts";
import type { RecordGate } from "../records/record-gate.ts";
import type { PlainHead } from "./head-scanner.ts";

export type QuickDeps = EntryDeps &
  JudgingDeps & {
    readonly states: StagedStates;
    readonly clients: ClientAddresses;
    readonly gate: Pick<RecordGate, "admitsNow">;
    /** The port on which HTTPS is served; null if this program does not serve it. */
    readonly tlsPort: number | null;
  };

/** An answer to be written in this step, and what is known of its request for the record. */
export type QuickAnswer = {
  readonly kind: "answer";
  readonly asked: QuickRequest;
  readonly status: number;
  readonly cache: RequestRecord["cache"];
  /** Whole but for what its connection says. */
  readonly head: string;
  /** A string has one character a byte. */
  readonly body: string | Uint8Array;
};

/** The pipeline has to answer. */
export type QuickPass = {
  readonly kind: "pass";
  /** Whether room for the record was asked for, and whether it was kept for this request. */
  readonly admission: ReturnType<RecordGate["admitsNow"]>;
  readonly judged: JudgedVisitor | undefined;
};

/** What varies by a field that the origin is not told as it was sent is selected by the pipeline. */
class Unselectable extends Error {}
const unselectable = new Unselectable("only the pipeline knows what the origin is told");

/** The most values of Accept-Encoding whose codings are remembered. */
const acceptedMax = 256;

export class QuickAnswers {
  readonly #deps: QuickDeps;
  readonly #table = new HotTable();
  readonly #accepted = new Map<string, readonly Coding[]>();

  constructor(deps: QuickDeps) {
    this.#deps = deps;
  }

  /** To be written before anything else happens: whatever was asked of the cache holds for this step alone. */
  answer(head: PlainHead, connection: Connection): QuickAnswer | QuickPass {
    const { gate, states, clients, clock, tlsPort } = this.#deps;
    if (head.needsPipeline) return { kind: "pass", admission: "has-to-wait", judged: undefined };
    const admission = gate.admitsNow();
    if (admission === "has-to-wait") return { kind: "pass", admission, judged: undefined };
    const state = states.current();
    this.#table.use(state);
    const { peer } = connection;
    const client = peer === undefined ? undefined : clients.ofRequest(peer, head.fields);
    const asked = new QuickRequest(head, connection, {
      client,
      startedWallMs: clock.wallMs(),
      startedMs: clock.steadyMs(),
      tlsPort,
    });
    asked.isClaimed = admission === "claimed";
    const host = this.#table.host(head.host) ?? this.#findHost(asked, state);
    if (host === undefined) return { kind: "pass", admission, judged: undefined };
    asked.host = host;
    asked.judged = judgeRequest(this.#deps, asked, host, state.version);
    return this.#given(asked) ?? { kind: "pass", admission, judged: asked.judged };
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
      asked.file = noFile;
      asked.rule = known.rule;
    } else asked.target ??= parseTarget(asked.request.url);
    for (;;) {
      const step = nextStep(asked);
      if (typeof step === "string") {
        if (this.#learn(asked, step, known) === "unknown") return undefined;
      } else if (isPlain(step)) return plain(asked, step, this.#deps.clock.wallMs());
      else
        return step.kind === "serve" && asked.stored !== undefined
          ? this.#stored(asked, asked.stored)
          : undefined;
    }
  }

  #learn(
    asked: QuickRequest,
    wanted: Exclude<ReturnType<typeof nextStep>, object>,
    known: HotRoute | undefined,
  ): "known" | "unknown" {
    switch (wanted) {
      case "file":
        if (asked.site.files.absent?.has(asked.asked.rawPath) !== true) return "unknown";
        asked.file = noFile;
        return "known";
      case "rule":
        asked.rule = asked.site.routes.cache(asked.asked.rawPath);
        return "known";
      case "stored":
        asked.route = known ?? this.#keepRoute(asked);
        asked.stored = this.#lookUp(asked, asked.route);
        return asked.stored === undefined ? "unknown" : "known";
      default:
        return "unknown";
    }
  }

  #keepRoute({ scheme, authority, request, asked: target, site, rule }: QuickRequest): HotRoute {
    if (rule === undefined) throw new TypeError("no rule is known yet");
    const { main_domain: domain, host } = site.site;
    const query = rule.normalizeQuery(target.rawQuery);
    const key = { domain, host, kind: "generated", path: target.rawPath, query } as const;
    return this.#table.keepRoute(scheme, authority, request.url, { target, site, rule, key });
  }

  #lookUp(asked: QuickRequest, { key, rule }: HotRoute): QuickStored | undefined {
    const { cache, clock } = this.#deps;
    const entries = cache.findHeld(key);
    if (entries === undefined) return undefined;
    const selector = new QuickSelector(asked, rule);
    let base: Entry | undefined;
    try {
      ({ base } = selectStored(entries, (one) => cache.servable(one), selector, rule));
    } catch (error) {
      if (error === unselectable) return undefined;
      throw error;
    }
    if (base === undefined) return undefined;
    return {
      entries,
      base,
      missing: "uri-miss",
      request: nothingAsked,
      settings: rule.settings,
      confirmed: cache.confirmed(key.domain),
      nowMs: clock.ageMs(),
    };
  }

  /** Answers with a stored response that the plan has found fresh in this step. */
  #stored(asked: QuickRequest, { base, entries, nowMs }: QuickStored): QuickAnswer | undefined {
    const { cache, metrics } = this.#deps;
    const { request, route, site } = asked;
    if (route === undefined) return undefined;
    const forms =
      formsOf(route, base) ?? this.#table.keepForms(route, base, hasVariants(site.site, base));
    const entry = forms.isCodable ? this.#chooseForm(request, base, entries) : base;
    if (entry !== base && !cache.servable(entry)) return undefined;
    const kind = kindOf(request, forms, base, entry, nowMs);
    const hasBody = request.method !== "HEAD" && kind.status !== 204 && kind.status !== 304;
    const body = hasBody ? cache.held(entry) : "";
    if (body === undefined) return undefined;
    const ageS = Math.max(0, currentAgeS(base, nowMs));
    const head =
      headOf(forms, kind, ageS) ?? this.#makeHead(asked, route, forms, { base, entry, kind, ageS });
    cache.noteHit(entries, entry);
    if (hasBody) countVariant(metrics, base, entry);
    return { kind: "answer", asked, status: kind.status, cache: "hit", head, body };
  }

  #chooseForm(request: PlainHead, base: Entry, entries: readonly Entry[]): Entry {
    const { cache, variants } = this.#deps;
    const { variant, wanted } = chooseCoded(cache, this.#acceptedBy(request), base, entries);
    if (wanted !== undefined)
      variants.offer({ base, coding: wanted, read: async () => readAgain(cache, base) });
    return variant ?? base;
  }

  #acceptedBy({ acceptEncoding = "" }: PlainHead): readonly Coding[] {
    const known = this.#accepted.get(acceptEncoding);
    if (known !== undefined) return known;
    if (this.#accepted.size >= acceptedMax) this.#accepted.clear();
    const accepted = acceptedCodings(acceptEncoding);
    this.#accepted.set(acceptEncoding, accepted);
    return accepted;
  }

  #makeHead(
    { site, scheme, host }: QuickRequest,
    route: HotRoute,
    forms: HotForms,
    { base, entry, kind, ageS }: HeadMaking,
  ): string {
    const { headers } = base;
    const { isCodable } = forms;
    const choice: BodyChoice = {
      entry,
      headers: isCodable ? codedFields(headers, kind.sent) : headers,
      known: isCodable ? codedFields(headers, kind.named) : headers,
      isCodable,
    };
    const plan = { status: kind.status, range: undefined };
    const fields = entryFields({ site: site.site, base, ageS, said: "hit" }, choice, plan);
    const flat = flatHead(fields, host === undefined ? 0 : hstsOf(host, scheme));
    const text = headText(kind.status, flat);
    // A stored response has its origin's date, unless the site removes it.
    if (!hasField(flat, "date")) return `${text}${dateLine(this.#deps.clock.wallMs())}`;
    this.#table.keepHead(route, forms, { ...kind, ageS, text });
    return text;
  }
}

type HeadMaking = {
  readonly base: Entry;
  readonly entry: Entry;
  readonly kind: HeadKind;
  readonly ageS: number;
};

/** Which head answers: the visitor's conditions may know another form than the one that is sent. */
function kindOf(
  request: PlainHead,
  { isCodable }: HotForms,
  base: Entry,
  entry: Entry,
  nowMs: number,
): HeadKind {
  const sent = entry.coding;
  if (!request.isConditional) return { status: base.status, sent, named: sent };
  const choice = choiceOf(request, base, entry, isCodable);
  const { status } = planEntry(request, base.status, choice, nowMs);
  const { fields } = request;
  const named = isCodable ? namedCoding(fields, fieldValue(base.headers, "etag"), sent) : sent;
  return { status, sent, named: status === 304 ? named : sent };
}

type QuickStored = StoredFact & { readonly entries: readonly Entry[]; readonly base: Entry };

/** A plain head has no field that says anything else. */
const nothingAsked = requestDirectives([]);

/** What is known of a request, as the plan asks for it, and for its record. */
export class QuickRequest implements RequestFacts, PlainAsked {
  readonly request: PlainHead;
  readonly connection: Connection;
  readonly client: ClientAddress | undefined;
  readonly scheme: Scheme;
  readonly startedWallMs: number;
  readonly startedMs: number;
  readonly tlsPort: number | null;
  isClaimed = false;
  target: RequestTarget | undefined;
  host: ServedUnder | undefined;
  judged: JudgedVisitor | undefined;
  file: typeof noFile | undefined;
  rule: CacheRoute | undefined;
  stored: QuickStored | undefined;
  route: HotRoute | undefined;
  readonly singlePage = nothingKnown.singlePage;
  readonly notFoundPage = nothingKnown.notFoundPage;

  constructor(
    request: PlainHead,
    connection: Connection,
    { client, startedWallMs, startedMs, tlsPort }: QuickArrival,
  ) {
    this.request = request;
    this.connection = connection;
    this.client = client;
    this.scheme = visitorScheme({ client });
    this.startedWallMs = startedWallMs;
    this.startedMs = startedMs;
    this.tlsPort = tlsPort;
  }

  get verdict(): JudgedVisitor["verdict"] | undefined {
    return this.judged?.verdict;
  }

  get fields(): PlainHead["fields"] {
    return this.request.fields;
  }

  get authority(): string {
    return this.request.host;
  }

  get at(): this {
    return this;
  }

  /** The plan wants nothing of a site before it is known. */
  get site(): ServedSite {
    if (this.host?.compiled !== undefined) return this.host.compiled;
    throw new TypeError("no site is known yet");
  }

  get asked(): RequestTarget {
    if (this.target !== undefined) return this.target;
    throw new TypeError("the target names nothing");
  }
}

type QuickArrival = Pick<QuickRequest, "client" | "startedWallMs" | "startedMs" | "tlsPort">;

/** Selects among stored responses by the fields of a plain head. */
class QuickSelector implements Selector {
  /** A head with credentials is not answered here. */
  readonly isAuthorized = false;
  readonly passesOver = false;
  readonly #asked: QuickRequest;
  readonly #rule: CacheRoute;
  readonly selecting: Selecting;

  constructor(asked: QuickRequest, rule: CacheRoute) {
    this.#asked = asked;
    this.#rule = rule;
    this.selecting = selectingBy((name) => this.#selecting(name));
  }

  get hasOwnCookies(): boolean {
    return this.#rule.cookies(this.#asked.fields).kind === "own";
  }

  /** As the origin would be told them: see inquiry.ts. Throws Unselectable. */
  #selecting(name: string): string | undefined {
    const asked = this.#asked;
    if (name === "x-forwarded-proto") return askedScheme(asked);
    if (name === "accept-encoding") return normalAcceptEncoding(asked.request.acceptEncoding);
    if (name === queryRuleName) return this.#rule.queryRule;
    if (isToldAsSent(name)) return fieldValue(asked.fields, name);
    throw unselectable;
  }
}

function plain(asked: QuickRequest, step: PlainStep, nowMs: number): QuickAnswer {
  const { status, fields, body, cache } = plainAnswer(step, asked);
  const { host, scheme, request } = asked;
  const flat = flatHead(fields, host === undefined ? 0 : hstsOf(host, scheme));
  const head = `${headText(status, flat)}${dateLine(nowMs)}`;
  // The texts are Unicode: they go out as bytes.
  const bytes = request.method === "HEAD" ? "" : Buffer.from(body).toString("latin1");
  return { kind: "answer", asked, status, cache, head, body: bytes };
}
