// The way of a request. `core/serving/request-plan.ts` knows the order; here its facts are learned and its answers given.

import type { ClientAddresses } from "../../core/http/client-address.ts";
import { fieldValue } from "../../core/http/http-fields.ts";
import type { PassReason } from "../../core/http/http-pass.ts";
import { parseTarget, sentPath, type RequestTarget } from "../../core/http/request-path.ts";
import { nextStep, type RequestAnswer, type Wanted } from "../../core/serving/request-plan.ts";
import type { GeneratedDeps } from "./cached/fetched-answer.ts";
import { answerGenerated, lookUp } from "./cached/generated.ts";
import { Inquiry, type Look } from "./cached/inquiry.ts";
import { sendText, stallMs, writeHead, type Attempt } from "./doors/answer.ts";
import type { Exchange } from "./doors/exchange.ts";
import { Pacer } from "./doors/pacer.ts";
import { noFile, type SiteFile } from "./files/site-files.ts";
import { answerNotFound, answerStatic, type StaticAnswerDeps } from "./files/static-answer.ts";
import type { QuickFound, QuickPass } from "./lane/quick-answers.ts";
import { visitorScheme } from "./origin/origin-request.ts";
import {
  hstsOf,
  judgeRequest,
  noteDecision,
  verdictOn,
  type JudgedVisitor,
  type JudgingDeps,
} from "./judging.ts";
import type { AskedLimits, RequestRates } from "./limits/request-rates.ts";
import { pass, type PassDeps } from "./origin/passing.ts";
import { plainAnswer, type PlainAsked, type PlainStep } from "./plain-answer.ts";
import type { ServedUnder } from "./pool/host-table.ts";
import type { StagedStates } from "./pool/staged-states.ts";
import { SiteFacts } from "./site-facts.ts";
import { passUpgrade, type UpgradeDeps } from "./upgrades/passing-upgrade.ts";

export type PipelineDeps = GeneratedDeps &
  StaticAnswerDeps &
  UpgradeDeps &
  PassDeps &
  JudgingDeps & {
    readonly states: StagedStates;
    readonly clients: ClientAddresses;
    readonly rates: Pick<RequestRates, "ask">;
    /** The port on which HTTPS is served; null if this program does not serve it. */
    readonly tlsPort: number | null;
  };

const nothingFound = { judged: undefined };
/** A file that changed during each of so many reads is being written. */
const readsMax = 4;
/** An entry that is cleared between lookup and head, or a fetch that turns out not to be shared, costs one; the last one asks the origin alone. */
const looksMax = 3;

/** What answers with the body of a file, of something stored, or of an origin. */
const sendsBodies: ReadonlySet<RequestAnswer["kind"]> = new Set<RequestAnswer["kind"]>([
  "file",
  "single-page",
  "serve",
  "serve-stale",
  "fetch",
  "pass",
]);

/**
 * Resolves when the answer has been handed over. Throws when the visitor left or the answer must break. `passed`: what
 * was found for this request in this step, by the state that is in force.
 */
export async function answer(
  deps: PipelineDeps,
  exchange: Exchange,
  { judged, limit, found }: Pick<QuickPass, "judged" | "limit" | "found"> = nothingFound,
): Promise<void> {
  const { peer } = exchange.connection;
  if (peer !== undefined) exchange.client ??= deps.clients.ofRequest(peer, exchange.fields);
  const target = found?.target ?? parseTarget(exchange.url);
  exchange.authority = target?.authority ?? fieldValue(exchange.fields, "host") ?? "";
  const walk = new Walk(deps, exchange, target);
  if (judged !== undefined) walk.take(judged, limit, found);
  try {
    await walk.answer();
  } finally {
    if (walk.holdsFiles) await walk[Symbol.asyncDispose]();
  }
}

/** One request on its way: what is known of it, as the plan asks for it. */
class Walk extends SiteFacts<Exchange> implements PlainAsked {
  override stored: Look | undefined = undefined;
  override limit: AskedLimits | undefined = undefined;
  readonly #deps: PipelineDeps;
  judged: JudgedVisitor | undefined;
  #inquiry: Inquiry | undefined;
  /** The version of the state that the host was found in. */
  #version = 0;
  /**
   * The number of the newest clear, read before the file was looked for, as for everything that may become an
   * entry.
   */
  #sourceNo = 0;
  #reads = 0;
  #looks = 0;

  constructor(deps: PipelineDeps, exchange: Exchange, target: RequestTarget | undefined) {
    super(exchange, target, visitorScheme(exchange), exchange.startedWallMs);
    this.#deps = deps;
  }

  /** Takes what was found already: neither host nor verdict is wanted then, and with `found` neither file nor rule. What was counted is not counted again. */
  take(judged: JudgedVisitor, limit: AskedLimits | undefined, found: QuickFound | undefined): void {
    this.#serve(judged.served);
    this.#version = judged.version;
    this.judged = judged;
    this.verdict = this.request.verdict = judged.verdict;
    this.#takeLimit(limit);
    if (found === undefined) return;
    this.file = noFile;
    this.rule = found.rule;
  }

  get at(): Exchange {
    return this.request;
  }

  get tlsPort(): number | null {
    return this.#deps.tlsPort;
  }

  async answer(): Promise<void> {
    for (;;) {
      const step = nextStep(this);
      if (typeof step === "string") {
        const learned = this.#learn(step);
        if (learned !== undefined) await learned;
      } else if ((await this.#give(step)) === "answered") return;
    }
  }

  /** Undefined: it is known at once. */
  #learn(wanted: Wanted): Promise<void> | undefined {
    switch (wanted) {
      case "host":
        this.#findHost();
        return undefined;
      case "verdict":
        this.#judge();
        return undefined;
      case "limit":
        this.#askLimits();
        return undefined;
      case "rule":
        this.rule = this.site.routes.cache(this.asked, this.request);
        return undefined;
      case "stored":
        this.request.cache = "miss";
        this.#inquire().passesOver = ++this.#looks >= looksMax;
        this.stored = lookUp(this.#deps, this.#inquire());
        return undefined;
      default:
        this.#sourceNo = this.#deps.cache.sourceNo();
        return this.learnOfSite(wanted);
    }
  }

  #findHost(): void {
    const { request } = this;
    const state = this.#deps.states.current();
    this.#version = state.version;
    const host = state.route(request.authority);
    if (host.kind === "served") this.#serve(host);
    else this.found(host);
  }

  #serve(served: ServedUnder): void {
    const { request } = this;
    this.found(served);
    request.domain = served.domain;
    request.hstsS = hstsOf(served, this.scheme);
  }

  #judge(): void {
    const { host: served, request } = this;
    if (served?.kind !== "served") return;
    this.judged = judgeRequest(this.#deps, request, served, this.#version);
    this.verdict = request.verdict = this.judged.verdict;
  }

  #askLimits(): void {
    const { request, site, asked, judged } = this;
    if (judged === undefined) throw new TypeError("nobody was judged yet");
    const { method, client, fields, startedWallMs } = request;
    const visitor = { method, client, fields, startedWallMs, judged };
    this.#takeLimit(this.#deps.rates.ask(site.limits.requests(asked.rawPath), visitor));
  }

  #takeLimit(limit: AskedLimits | undefined): void {
    this.limit = limit;
    this.request.limit = limit?.verdict;
  }

  #inquire(): Inquiry {
    if (this.#inquiry !== undefined) return this.#inquiry;
    const { request, site, asked, rule } = this;
    const { backend } = site.site;
    if (backend === null || rule === undefined) throw new TypeError("no rule is known yet");
    return (this.#inquiry = new Inquiry(request, site, backend, asked, rule));
  }

  async #give(step: RequestAnswer): Promise<Attempt> {
    const { request } = this;
    if (sendsBodies.has(step.kind)) this.#paceBody();
    switch (step.kind) {
      case "file":
        return await this.#sendFile();
      case "single-page":
        return await this.#sendSinglePage();
      case "not-found-page":
        return await this.#sendNotFoundPage();
      case "nothing-stored": {
        if (step.passed !== undefined) this.#passes(step.passed);
        const text = "Nothing is stored for this request, and it asked for nothing else.";
        sendText(request, 504, text);
        return "answered";
      }
      case "upgrade":
        await this.#passUpgrade();
        return "answered";
      case "pass":
        this.#passes(step.reason);
        await pass(this.#deps, this.#inquire(), step.reason);
        return "answered";
      case "serve":
      case "serve-stale":
      case "fetch":
        return await this.#sendGenerated(step);
      default:
        return this.#sendPlain(step);
    }
  }

  #paceBody(): void {
    const { request, site, asked } = this;
    const pace = site.limits.bytes(asked.rawPath);
    const { clock } = this.#deps;
    if (pace !== undefined) request.pacer ??= new Pacer(pace, { clock, stallMs });
  }

  #sendPlain(step: PlainStep): Attempt {
    const { request } = this;
    const { status, fields, body, cache } = plainAnswer(step, this);
    if (status === 405 && this.host === undefined) this.#noteDomain();
    request.cache = cache;
    writeHead(request, status, fields);
    request.response.end(Buffer.from(body));
    return "answered";
  }

  /** A method is refused before the host matters, in a whole request: its record is in the log of the domain. What is malformed is nobody's, for its host may not be what it says. */
  #noteDomain(): void {
    const host = this.#deps.states.current().route(this.request.authority);
    if (host.kind === "served") this.request.domain = host.domain;
  }

  async #sendFile(): Promise<Attempt> {
    if (this.file?.kind !== "file") return "nothing-sent";
    const { file } = this.file;
    if ((await this.#sendStatic(file)) === "answered") return "answered";
    await file[Symbol.asyncDispose]();
    this.file = ++this.#reads < readsMax ? undefined : { kind: "changing" };
    return "nothing-sent";
  }

  async #sendSinglePage(): Promise<Attempt> {
    if (this.singlePage?.kind !== "file") return "nothing-sent";
    const { file } = this.singlePage;
    if ((await this.#sendStatic(file)) === "answered") return "answered";
    await file[Symbol.asyncDispose]();
    this.singlePage = { kind: "none" };
    return "nothing-sent";
  }

  async #sendStatic(file: SiteFile): Promise<Attempt> {
    const { site, files } = this.site;
    const { pictureWidth } = this.asked;
    const found = { site, files, file, pictureWidth, sourceNo: this.#sourceNo };
    return await answerStatic(this.#deps, this.request, found);
  }

  async #sendNotFoundPage(): Promise<Attempt> {
    if (this.notFoundPage?.kind !== "file") return "nothing-sent";
    await answerNotFound(this.request, this.site.site, this.notFoundPage.file);
    return "answered";
  }

  async #passUpgrade(): Promise<void> {
    const { request: exchange, site, asked } = this;
    exchange.cache = "pass";
    const deps = this.#deps;
    const path = sentPath(asked);
    const isWelcome = (): boolean => isStillWelcome(deps, exchange);
    await passUpgrade(deps, { exchange, site, path, judgedBy: this.#version, isWelcome });
  }

  #passes(reason: PassReason): void {
    this.request.cache = "pass";
    const { domain } = this.#inquire().key;
    this.#deps.metrics.origin.passed(domain, reason);
  }

  async #sendGenerated(reuse: Parameters<typeof answerGenerated>[3]): Promise<Attempt> {
    if (this.stored === undefined) return "nothing-sent";
    const attempt = await answerGenerated(this.#deps, this.#inquire(), this.stored, reuse);
    if (attempt === "nothing-sent") this.stored = undefined;
    return attempt;
  }
}

/**
 * Judges the visitor of an open upgrade by the state in force. A host that is served no longer has no visitors;
 * one without a devlove keeps those that it has.
 */
function isStillWelcome(deps: PipelineDeps, exchange: Exchange): boolean {
  const served = deps.states.current().route(exchange.authority);
  if (served.kind !== "served") return false;
  const verdict = verdictOn(deps, exchange, served);
  if (verdict.kind !== "block") return true;
  exchange.verdict = verdict;
  const { client, fields } = exchange;
  noteDecision(deps, { client, fields, startedWallMs: deps.clock.wallMs() }, served, verdict);
  return false;
}
