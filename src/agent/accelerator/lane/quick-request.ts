// A request as the lane knows it: the facts that the plan asks for, who sent it, and how its fields select among stored responses. What depends on the
// connection and the fields alone is found once, for browsers send the same fields with each request.

import type { ClientAddress, Scheme } from "../../../core/http/client-address.ts";
import { acceptedCodings, type Coding } from "../../../core/http/content-coding.ts";
import { acceptedImages, type AcceptedImages } from "../../../core/images/accepted-images.ts";
import { fieldValue } from "../../../core/http/http-fields.ts";
import type { Selector } from "../../../core/http/http-reuse.ts";
import {
  normalAcceptEncoding,
  requestEditsKey,
  ruleChoiceName,
  selectingValue,
  toldCookiesName,
} from "../../../core/http/http-vary.ts";
import { toldToShare } from "../../../core/http/request-cookies.ts";
import type { RequestTarget } from "../../../core/http/request-path.ts";
import { toldVerdict, type ToldVerdict } from "../../../core/limits/limit-verdict.ts";
import type { RequestLimit } from "../../../core/limits/site-limits.ts";
import {
  nothingKnown,
  type RequestFacts,
  type StoredFact,
} from "../../../core/serving/request-plan.ts";
import type { CacheRoute } from "../../../core/serving/cache-route.ts";
import { queryRuleName } from "../../../core/serving/site-routes.ts";
import type { Entry } from "../../cache/entry.ts";
import type { HeldEntries } from "../../cache/worker/hot-lookups.ts";
import type { FormTaker } from "../cached/forms.ts";
import type { HeadKind, HotForms, HotRoute } from "../cached/hot-table.ts";
import type { Connection } from "../doors/exchange.ts";
import type { FileFound } from "../files/site-files.ts";
import type { JudgedVisitor } from "../judging.ts";
import type { AskedLimits } from "../limits/request-rates.ts";
import { askedScheme, isToldAsSent, visitorScheme } from "../origin/origin-request.ts";
import type { PlainAsked } from "../plain-answer.ts";
import type { ServedSite, ServedUnder } from "../pool/host-table.ts";
import { targetPart, visitorPart } from "../records/record-line.ts";
import type { PlainFields, PlainRequest } from "./head-scanner.ts";

/** What memory holds for a request. */
export type QuickStored = StoredFact & { readonly held: HeldEntries; readonly base: Entry };

/** What is known of a request, as the plan asks for it, and for its record. */
export class QuickRequest implements RequestFacts, PlainAsked {
  readonly request: PlainRequest;
  readonly connection: Connection;
  readonly visitor: QuickVisitor;
  readonly scheme: Scheme;
  readonly startedWallMs: number;
  readonly startedMs: number;
  readonly tlsPort: number | null;
  isClaimed = false;
  target: RequestTarget | undefined;
  host: ServedUnder | undefined;
  judged: JudgedVisitor | undefined;
  limit: AskedLimits | undefined;
  /** The rules of `limits.requests` that the path meets, as far as they are known. */
  limits: readonly RequestLimit[] | undefined;
  file: FileFound | undefined;
  rule: CacheRoute | undefined;
  stored: QuickStored | undefined;
  route: HotRoute | undefined;
  readonly singlePage = nothingKnown.singlePage;
  readonly notFoundPage = nothingKnown.notFoundPage;

  constructor(
    request: PlainRequest,
    connection: Connection,
    { visitor, startedWallMs, startedMs, tlsPort }: QuickArrival,
  ) {
    this.request = request;
    this.connection = connection;
    this.visitor = visitor;
    this.scheme = visitorScheme(visitor);
    this.startedWallMs = startedWallMs;
    this.startedMs = startedMs;
    this.tlsPort = tlsPort;
  }

  get verdict(): JudgedVisitor["verdict"] | undefined {
    return this.judged?.verdict;
  }

  get client(): ClientAddress | undefined {
    return this.visitor.client;
  }

  get fields(): PlainRequest["fields"] {
    return this.request.fields;
  }

  get authority(): string {
    return this.request.said.host;
  }

  get at(): this {
    return this;
  }

  /** The plan wants nothing of a site before it is known. */
  get site(): ServedSite {
    if (this.host?.compiled !== undefined) return this.host.compiled;
    throw new TypeError("no site is known yet");
  }

  /** For the record. */
  get targetPart(): string {
    const { route, request, authority, host } = this;
    if (route === undefined) return targetPart(request.url, authority, host?.domain ?? null);
    return (route.recordPart ??= targetPart(request.url, authority, host?.domain ?? null));
  }

  get visitorPart(): string {
    const told = toldVerdict(this.verdict, this.limit?.verdict);
    return this.visitor.recordPart(this.connection, told);
  }

  get asked(): RequestTarget {
    if (this.target !== undefined) return this.target;
    throw new TypeError("the target names nothing");
  }
}

type Conditional = {
  readonly forms: HotForms;
  readonly entry: Entry;
  readonly method: PlainRequest["method"];
  readonly kind: HeadKind;
};

/** What is found of a visitor by his connection and the fields that he sends, each when it is first asked for. */
export class QuickVisitor implements FormTaker {
  readonly client: ClientAddress | undefined;
  /** The verdict of a state, if it may be given again: nothing but the verdict is counted with it. */
  judged: JudgedVisitor | undefined;
  /** Which head answered his conditions. */
  conditional: Conditional | undefined;
  readonly #said: PlainFields;
  #codings: readonly Coding[] | undefined;
  #images: AcceptedImages | undefined;
  #selecting: Map<string, string> | undefined;
  #recordPart: string | undefined;
  /** The verdict that stands in it. */
  #recorded: ToldVerdict | undefined;

  constructor(said: PlainFields, client: ClientAddress | undefined) {
    this.#said = said;
    this.client = client;
  }

  recordPart({ peer }: Connection, verdict: ToldVerdict | undefined): string {
    if (this.#recordPart === undefined || !isSame(this.#recorded, verdict)) {
      const clientIp = this.client?.text ?? peer?.text ?? "";
      this.#recordPart = visitorPart(clientIp, this.#said.userAgent, verdict);
      this.#recorded = verdict;
    }
    return this.#recordPart;
  }

  get acceptedCodings(): readonly Coding[] {
    return (this.#codings ??= acceptedCodings(this.#said.acceptEncoding));
  }

  get acceptedImages(): AcceptedImages {
    return (this.#images ??= acceptedImages(fieldValue(this.#said.fields, "accept")));
  }

  /** A field's value, in its one spelling, as the origin would be told it. */
  selecting(name: string): string {
    const known = this.#selecting?.get(name);
    if (known !== undefined) return known;
    const { acceptEncoding, fields } = this.#said;
    const said =
      name === "accept-encoding" ? normalAcceptEncoding(acceptEncoding) : fieldValue(fields, name);
    const value = selectingValue(name, said);
    this.#selecting ??= new Map();
    this.#selecting.set(name, value);
    return value;
  }
}

/** Returns whether a record says the same of both. */
function isSame(one: ToldVerdict | undefined, other: ToldVerdict | undefined): boolean {
  if (one === other) return true;
  return one?.kind === other?.kind && one?.reason === other?.reason && one?.bot === other?.bot;
}

type QuickArrival = Pick<QuickRequest, "visitor" | "startedWallMs" | "startedMs" | "tlsPort">;

/** Selects among stored responses by the fields of a plain head. */
export class QuickSelector implements Selector {
  /** A head with credentials is not answered here. */
  readonly isAuthorized = false;
  readonly passesOver = false;
  /** Something varies by a field that the origin is not told as it was sent: the pipeline selects. */
  isUnsure = false;
  readonly #asked: QuickRequest;
  readonly #rule: CacheRoute;

  constructor(asked: QuickRequest, rule: CacheRoute) {
    this.#asked = asked;
    this.#rule = rule;
  }

  get hasOwnCookies(): boolean {
    return this.#toldToShare() === undefined;
  }

  #toldToShare(): string | undefined {
    return toldToShare(this.#rule.cookies(this.#asked.fields));
  }

  /** As the origin would be told them: see inquiry.ts. */
  readonly selecting = (name: string): string => {
    if (name === "x-forwarded-proto") return askedScheme(this.#asked);
    if (name === queryRuleName) return selectingValue(name, this.#rule.queryRule);
    if (name === ruleChoiceName) return this.#rule.choice;
    if (name === requestEditsKey) return this.#rule.requestEdits;
    if (this.#rule.toldAlike.has(name)) return "";
    if (name === "cookie" || name === toldCookiesName) return this.#cookies();
    if (name === "accept-encoding" || isToldAsSent(name))
      return this.#asked.visitor.selecting(name);
    return this.#leave();
  };

  #cookies(): string {
    return this.#toldToShare() ?? this.#leave();
  }

  #leave(): string {
    this.isUnsure = true;
    return "";
  }
}
