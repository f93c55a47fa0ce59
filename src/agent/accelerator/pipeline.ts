// The way of a request. `core/serving/request-plan.ts` knows the order; here its facts are learned and its answers given.

import type { ClientAddresses } from "../../core/http/client-address.ts";
import { fieldValue, type Field } from "../../core/http/http-fields.ts";
import type { PassReason } from "../../core/http/http-pass.ts";
import {
  httpsUrl,
  parseTarget,
  sentPath,
  type RequestTarget,
} from "../../core/http/request-path.ts";
import { nextStep, type RequestAnswer, type Wanted } from "../../core/serving/request-plan.ts";
import type { Verdict } from "../../core/serving/verdict.ts";
import type { DecisionTeller } from "../bots/decisions/decision-teller.ts";
import type { VisitorJudge } from "../bots/decisions/evidence.ts";
import type { GeneratedDeps } from "./cached/fetched-answer.ts";
import { answerGenerated, lookUp } from "./cached/generated.ts";
import { Inquiry, type Look } from "./cached/inquiry.ts";
import { sendText, withSiteHeaders, writeHead, type Attempt } from "./doors/answer.ts";
import type { Exchange } from "./doors/exchange.ts";
import type { SiteFile } from "./files/site-files.ts";
import { answerNotFound, answerStatic, type StaticAnswerDeps } from "./files/static-answer.ts";
import { askedPort, visitorScheme } from "./origin/origin-request.ts";
import { pass } from "./origin/passing.ts";
import type { ServedUnder } from "./pool/host-table.ts";
import type { StagedStates } from "./pool/staged-states.ts";
import type { RequestTally } from "./records/request-tally.ts";
import { SiteFacts } from "./site-facts.ts";
import { passUpgrade, type UpgradeDeps } from "./upgrades/passing-upgrade.ts";

export type PipelineDeps = GeneratedDeps &
  StaticAnswerDeps &
  UpgradeDeps & {
    readonly states: StagedStates;
    readonly clients: ClientAddresses;
    readonly judge: VisitorJudge;
    readonly tally: RequestTally;
    readonly decisions: Pick<DecisionTeller, "note">;
    /** The port on which HTTPS is served; null if this program does not serve it. */
    readonly tlsPort: number | null;
  };

/** A file that changed during each of so many reads is being written. */
const readsMax = 4;
/** An entry that is cleared between lookup and head, or a fetch that turns out not to be shared, costs one; the last one asks the origin alone. */
const looksMax = 3;

/** Resolves when the answer has been handed over. Throws when the visitor left or the answer must break. */
export async function answer(deps: PipelineDeps, exchange: Exchange): Promise<void> {
  const { peer } = exchange.connection;
  if (peer !== undefined) exchange.client = deps.clients.ofRequest(peer, exchange.fields);
  const target = parseTarget(exchange.url);
  exchange.authority = target?.authority ?? fieldValue(exchange.fields, "host") ?? "";
  await using walk = new Walk(deps, exchange, target);
  await walk.answer();
}

/** One request on its way: what is known of it, as the plan asks for it. */
class Walk extends SiteFacts<Exchange> {
  override stored: Look | undefined = undefined;
  readonly #deps: PipelineDeps;
  /** The one that the verdict can be looked up by, where it is against the visitor. */
  #decisionId = "";
  #inquiry: Inquiry | undefined;
  /** The version of the state that the host was found in. */
  #judgedBy = 0;
  /**
   * The number of the newest clear, read before the file was looked for, as for everything that may become an
   * entry.
   */
  #sourceNo = 0;
  #reads = 0;
  #looks = 0;

  constructor(deps: PipelineDeps, exchange: Exchange, target: RequestTarget | undefined) {
    super(exchange, target, visitorScheme(exchange));
    this.#deps = deps;
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
      case "rule":
        this.rule = this.site.routes.cache(this.asked.rawPath);
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
    this.#judgedBy = state.version;
    const host = state.route(request.authority);
    this.host = host;
    if (host.kind !== "served") return;
    request.domain = host.domain;
    // Not over plain HTTP, where anybody could say it (RFC 6797 §7.2).
    if (this.scheme === "https") request.hstsS = host.compiled?.site.tls.hsts_s ?? 0;
  }

  /**
   * Judges the visitor, in one step with the look-up of the state: once the request waits, the tables of that
   * state are no longer its own.
   */
  #judge(): void {
    const { host: served, request } = this;
    if (served?.kind !== "served") return;
    const { domain } = served;
    const verdict = judged(this.#deps, request, served);
    this.verdict = request.verdict = verdict;
    this.#deps.tally.judged(domain, verdict);
    if (verdict.kind === "allow") return;
    this.#decisionId = noted(this.#deps, request, served, verdict, request.startedWallMs);
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
    switch (step.kind) {
      case "refused":
        sendText(request, step.status, step.text, step.fields);
        return "answered";
      case "blocked": {
        request.cache = "blocked";
        const text = `Access to this site is denied (${request.verdict?.reason}).`;
        sendText(request, 403, text, [["X-Accel-Decision", this.#decisionId]]);
        return "answered";
      }
      case "options": {
        const said = step.isOfFiles ? Object.entries(this.site.site.headers.set) : [];
        return this.#sendHead(204, [["Allow", step.allow], ...said]);
      }
      case "redirect-to-https":
        return this.#redirect(308, this.#httpsUrl());
      case "redirect":
        return this.#redirect(step.status, step.to);
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
      default:
        return await this.#sendGenerated(step);
    }
  }

  #sendHead(status: number, fields: readonly Field[]): Attempt {
    writeHead(this.request, status, fields);
    this.request.response.end();
    return "answered";
  }

  #redirect(status: number, to: string): Attempt {
    const fields: readonly Field[] = [
      ["Location", to],
      ["Content-Length", "0"],
    ];
    return this.#sendHead(status, withSiteHeaders(fields, this.site.site.headers));
  }

  /** Who came to another port than 80 is where ports are not the usual ones; the others find HTTPS where everybody does. */
  #httpsUrl(): string {
    const { tlsPort } = this.#deps;
    const { host } = this.site.site;
    const isOdd = askedPort(this.request) !== undefined && tlsPort !== null && tlsPort !== 443;
    return httpsUrl(isOdd ? `${host}:${tlsPort}` : host, this.asked);
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
    const found = { site, files, file, sourceNo: this.#sourceNo };
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
    await passUpgrade(deps, { exchange, site, path, judgedBy: this.#judgedBy, isWelcome });
  }

  #passes(reason: PassReason): void {
    this.request.cache = "pass";
    const { domain } = this.#inquire().key;
    this.#deps.metrics.accel_agent_cache_passed_total.inc({ domain, reason });
  }

  async #sendGenerated(reuse: Parameters<typeof answerGenerated>[3]): Promise<Attempt> {
    if (this.stored === undefined) return "nothing-sent";
    const attempt = await answerGenerated(this.#deps, this.#inquire(), this.stored, reuse);
    if (attempt === "nothing-sent") this.stored = undefined;
    return attempt;
  }
}

function judged({ judge }: PipelineDeps, exchange: Exchange, served: ServedUnder): Verdict {
  const { domain, host } = served;
  const userAgent = fieldValue(exchange.fields, "user-agent");
  return judge(host.bots, exchange.client?.text ?? "", userAgent, domain);
}

/** Notes a decision against a visitor and returns its id. */
function noted(
  { decisions }: PipelineDeps,
  exchange: Exchange,
  { host }: ServedUnder,
  verdict: Verdict,
  atMs: number,
): string {
  const userAgent = fieldValue(exchange.fields, "user-agent");
  const clientIp = exchange.client?.text ?? "";
  const policyOf = host.bots.unknownBotsPolicyOf;
  return decisions.note({ atMs, host: host.name, clientIp, userAgent, verdict, policyOf });
}

/**
 * Judges the visitor of an open upgrade by the state in force. A host that is served no longer has no visitors;
 * one without a devlove keeps those that it has.
 */
function isStillWelcome(deps: PipelineDeps, exchange: Exchange): boolean {
  const served = deps.states.current().route(exchange.authority);
  if (served.kind !== "served") return false;
  const verdict = judged(deps, exchange, served);
  if (verdict.kind !== "block") return true;
  exchange.verdict = verdict;
  noted(deps, exchange, served, verdict, deps.clock.wallMs());
  return false;
}
