// One accelerator worker without its thread, on a real socket, with a cache in memory and a list for records; and clients to ask it with.

import { randomBytes } from "node:crypto";
import { createServer, request as httpRequest, type RequestListener } from "node:http";
import { connect, type AddressInfo, type ListenOptions } from "node:net";
import { tmpdir } from "node:os";
import type { ResponseCache } from "../../../src/agent/accelerator/cached/cache-port.ts";
import type { FlightDeps } from "../../../src/agent/accelerator/cached/flight.ts";
import { Flights } from "../../../src/agent/accelerator/cached/flights.ts";
import type { Http2Limits } from "../../../src/agent/accelerator/doors/http2-sessions.ts";
import { VisitorListener } from "../../../src/agent/accelerator/doors/listener.ts";
import {
  VisitorShares,
  type VisitorLimits,
} from "../../../src/agent/accelerator/doors/visitor-shares.ts";
import type { ProxyProtocol } from "../../../src/agent/accelerator/doors/proxy-gate.ts";
import type { OriginGuard } from "../../../src/agent/accelerator/origin/origin-connector.ts";
import { OriginPools } from "../../../src/agent/accelerator/origin/origin-pools.ts";
import {
  OriginShares,
  type OriginShareLimits,
} from "../../../src/agent/accelerator/origin/origin-shares.ts";
import { LateWrites } from "../../../src/agent/accelerator/origin/late-writes.ts";
import {
  RequestBodies,
  type RequestBodyLimits,
} from "../../../src/agent/accelerator/bodies/request-bodies.ts";
import {
  BudgetOwner,
  type BudgetShare,
} from "../../../src/agent/accelerator/bodies/shared-budget.ts";
import { QuickAnswers, type QuickDeps } from "../../../src/agent/accelerator/lane/quick-answers.ts";
import { answer } from "../../../src/agent/accelerator/pipeline.ts";
import { beforeVisitors } from "../../../src/agent/accelerator/purging/purge-gateway.ts";
import type { PurgeTeller } from "../../../src/agent/accelerator/purging/purge-teller.ts";
import { ProblemLog } from "../../../src/agent/accelerator/records/problem-log.ts";
import {
  rateMemory,
  RateTable,
  type RateMemory,
} from "../../../src/agent/accelerator/limits/rate-table.ts";
import { RequestRates } from "../../../src/agent/accelerator/limits/request-rates.ts";
import { RecordGate } from "../../../src/agent/accelerator/records/record-gate.ts";
import { createRecorder } from "../../../src/agent/accelerator/records/recorder.ts";
import { RequestTally } from "../../../src/agent/accelerator/records/request-tally.ts";
import { SecureContexts } from "../../../src/agent/accelerator/doors/secure-contexts.ts";
import { PoolWords } from "../../../src/agent/accelerator/pool/shared-words.ts";
import { BlobBodies } from "../../../src/agent/accelerator/files/bodies.ts";
import { StagedStates } from "../../../src/agent/accelerator/pool/staged-states.ts";
import type { TicketKeys } from "../../../src/agent/accelerator/doors/ticket-keys.ts";
import {
  ImageMaker,
  type ImageMakerOptions,
} from "../../../src/agent/accelerator/cached/image-maker.ts";
import {
  VariantMaker,
  type VariantMakerOptions,
} from "../../../src/agent/accelerator/cached/variant-maker.ts";
import { createWorkerMetrics } from "../../../src/agent/accelerator/records/worker-metrics.ts";
import { silentLog, type Log } from "../../../src/base/log.ts";
import {
  OpenUpgrades,
  type UpgradeLimits,
} from "../../../src/agent/accelerator/upgrades/open-upgrades.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { ClientAddresses, type ForwardedHeader } from "../../../src/core/http/client-address.ts";
import type { Decision } from "../../../src/core/serving/decision.ts";
import { effectiveDevlove, type SiteInput } from "../../../src/core/serving/effective-devlove.ts";
import type { HostBots, ServingState, Views } from "../../../src/core/serving/serving-state.ts";
import type { CanaryLine, RequestRecord } from "../../../src/wire/request-log.ts";
import { toldRecord } from "../../support/told-record.ts";
import { MemoryCache } from "./memory-cache.ts";
import { Staples } from "../../../src/agent/accelerator/doors/staples.ts";
import { createClock, type WorkerClock } from "../../../src/agent/accelerator/clock.ts";
import type { VisitorJudge } from "../../../src/agent/bots/decisions/evidence.ts";
import type { ImageEncoder } from "../../../src/agent/images/image-encoder.ts";
import type { LaneWriter } from "../../../src/agent/requests/worker/lane-writer.ts";

export const host = "www.example.com";
const noBots: HostBots = {
  mode: "enforce",
  unknownBotsCanAccess: true,
  allow: new Set(),
  deny: new Set(),
  vip: [],
  bad: [],
};

/** A state with one domain of one host. */
export function stateOf(
  version: number,
  site: SiteInput | null,
  views: Views = { kind: "none" },
): ServingState {
  const config = site === null ? null : effectiveDevlove({ domains: { [host]: site } }, host, null);
  const served = { name: host, site: config, views, bots: noBots };
  return { version, domains: [{ name: host, hosts: [served], manifest: null }] };
}

export type EdgeOptions = {
  /** Instead of the one in memory. */
  readonly cache?: ResponseCache;
  readonly trusted?: readonly string[];
  readonly forwardedHeader?: ForwardedHeader;
  readonly proxyProtocol?: ProxyProtocol;
  readonly headerMs?: number;
  readonly defaultDomain?: string;
  readonly judge?: VisitorJudge;
  readonly blobsDir?: string;
  /** Requests are served only with room for their records. */
  readonly recordRoom?: Pick<LaneWriter, "claim">;
  readonly heldMax?: number | undefined;
  readonly originGuard?: OriginGuard;
  readonly http2?: Partial<Http2Limits> | undefined;
  readonly handshakeMs?: number;
  readonly upgrades?: Partial<UpgradeLimits>;
  readonly bodies?: Partial<RequestBodyLimits>;
  /** Room for the files of request bodies. */
  readonly bodyDisk?: BudgetShare;
  readonly visitors?: Partial<VisitorLimits>;
  readonly originShares?: Partial<OriginShareLimits>;
  /** See OriginSharesDeps. */
  readonly waitMs?: number;
  /** False: plain requests are left to node:http. */
  readonly lane?: boolean;
  /** See LaneOptions. */
  readonly laneLookMs?: number;
  /** Makes the forms of pictures. */
  readonly images?: ImageEncoder;
  /** Carries purges out; without it nobody may purge. */
  readonly purges?: Pick<PurgeTeller, "clear">;
  /** As told to those who are redirected there. */
  readonly tlsPort?: number | null;
  /** Instead of the real one. */
  readonly clock?: WorkerClock;
  /** The table of `limits.requests`; unsaid: one of its own. */
  readonly rates?: RateMemory;
  readonly log?: Log;
  readonly parts?: Partial<EdgeParts>;
};

/** Parts of a worker that tests put another in the place of, or break. */
export type EdgeParts = {
  readonly flights: (deps: FlightDeps) => Flights;
  readonly variants: (options: VariantMakerOptions) => VariantMaker;
  readonly imageVariants: (options: ImageMakerOptions) => ImageMaker;
  /** What requests that need no waiting are answered with. */
  readonly quick: (deps: QuickDeps) => QuickDeps;
  readonly records: (sink: Pick<LaneWriter, "accept">) => Pick<LaneWriter, "accept">;
};

const anyPort: ListenOptions = { host: "127.0.0.1", port: 0 };
const allowed: VisitorJudge = () => ({ kind: "allow", reason: "not-a-bot", bot: null });

export class Edge implements AsyncDisposable {
  readonly cache = new MemoryCache();
  readonly records: RequestRecord[] = [];
  /** Those that room was kept for. */
  readonly claimed: RequestRecord[] = [];
  readonly decisions: Decision[] = [];
  readonly registry = new Registry();
  /** How often an answer was asked for that needs no waiting. */
  readonly quick = { answer: 0, pass: 0 };
  /** Added to the clock that ages are taken with. */
  skewMs = 0;
  /** Added to the clock of the wall. */
  wallSkewMs = 0;
  /** Added to the clock by which the bodies of requests are too slow. */
  steadySkewMs = 0;
  port = 0;
  readonly #stack = new AsyncDisposableStack();
  readonly #words = new PoolWords();
  readonly staples = new Staples(() => Date.now());
  #ticketKeys: TicketKeys = { current: randomBytes(48), previous: undefined };
  readonly #states: StagedStates;
  readonly #listener: VisitorListener;

  constructor(options: EdgeOptions = {}) {
    this.switchLane(options.lane ?? true);
    const real = options.clock ?? createClock();
    const clock = {
      ...real,
      ageMs: () => real.ageMs() + this.skewMs,
      wallMs: () => real.wallMs() + this.wallSkewMs,
    };
    const stating = {
      defaultDomain: options.defaultDomain ?? null,
      bodies: this.#stack.use(
        new BlobBodies({ blobsDir: options.blobsDir ?? "/nonexistent", memoryMax: 2 ** 20 }),
      ),
      nowMs: real.wallMs,
    };
    this.#states = new StagedStates(this.#words, stating);
    const metrics = createWorkerMetrics(this.registry);
    const tally = new RequestTally(this.registry);
    const origins = this.#stack.use(
      new OriginPools(clock, () => 0, options.originGuard ?? { ownListeners: [] }),
    );
    const sink = {
      accept: (said: RequestRecord | CanaryLine | string, isClaimed = false) => {
        const record = toldRecord(said) as RequestRecord;
        this.records.push(record);
        if (isClaimed) this.claimed.push(record);
      },
    };
    const { parts = {} } = options;
    const records = { ...(parts.records?.(sink) ?? sink), begins: () => undefined };
    const problems = new ProblemLog(options.log ?? silentLog(), real.steadyMs);
    const cache = options.cache ?? this.cache;
    const originLimits = { requestsMax: 512, waitingMax: 512, ...options.originShares };
    const shares = new OriginShares({ limits: originLimits, metrics, waitMs: options.waitMs });
    const flying = { cache, origins, clock, metrics, problems, shares };
    const flights = this.#stack.use(parts.flights?.(flying) ?? new Flights(flying));
    const made = { cache, words: this.#words, no: 1, clock, metrics, problems };
    const variants = this.#stack.use(parts.variants?.(made) ?? new VariantMaker(made));
    const imaging = { ...made, encoder: options.images };
    const imageVariants = this.#stack.use(
      parts.imageVariants?.(imaging) ?? new ImageMaker(imaging),
    );
    const clients = new ClientAddresses(
      options.trusted ?? [],
      options.forwardedHeader ?? "x-forwarded-for",
    );
    const upgrades = this.#stack.use(
      new OpenUpgrades({
        limits: { openMax: 100, idleMs: 600_000, ...options.upgrades },
        clock,
        metrics,
        version: () => this.#states.current().version,
        lookMs: 10,
      }),
    );
    const bodies = this.#stack.use(
      new RequestBodies({
        limits: {
          memoryMax: 2 ** 24,
          disk: options.bodyDisk ?? new BudgetOwner(2 ** 24).share(),
          directory: tmpdir(),
          idleMs: 20_000,
          rateMin: 500,
          ...options.bodies,
        },
        clock: { ...clock, steadyMs: () => real.steadyMs() + this.steadySkewMs },
        metrics,
        problems,
        lookMs: 10,
      }),
    );
    const decisions = {
      note: (decision: Decision) => {
        this.decisions.push(decision);
        return "0123456789abcdef";
      },
    };
    const table = new RateTable(options.rates ?? rateMemory("a test"));
    const writes = new LateWrites();
    const deps = {
      rates: new RequestRates({ table, tally, decisions, clock }),
      decisions,
      shares,
      bodies,
      writes,
      cache,
      upgrades,
      variants,
      imageVariants,
      flights,
      states: this.#states,
      origins,
      clock,
      metrics,
      tally,
      problems,
      clients,
      tlsPort: options.tlsPort ?? null,
      judge: options.judge ?? allowed,
    };
    const limits = { connectionsMax: 0, requestsMax: 0, ...options.visitors };
    const visitors = new VisitorShares({ limits, clients, metrics, problems });
    const { recordRoom } = options;
    const gate = new RecordGate({ records, recordRoom, metrics, clock, heldMax: options.heldMax });
    this.#stack.use(gate);
    const quickDeps = { ...deps, gate, answersMemoryMax: 2 ** 20 };
    const quick = new QuickAnswers(parts.quick?.(quickDeps) ?? quickDeps);
    this.#listener = this.#stack.use(
      new VisitorListener({
        answer: gate.before(
          beforeVisitors(
            { ...deps, purges: options.purges },
            visitors.before(async (exchange) => answer(deps, exchange)),
          ),
        ),
        answerNow: visitors.before(async (exchange, passed) => answer(deps, exchange, passed)),
        visitors,
        quick: {
          answer: (head, connection) => {
            const found = quick.answer(head, connection);
            this.quick[found.kind]++;
            return found;
          },
        },
        writes,
        usesLane: () => this.#words.usesLane,
        laneLookMs: options.laneLookMs,
        nextConnection: () => this.#words.nextConnection(),
        clients,
        contexts: new SecureContexts({
          current: () => this.#states.current().certificates,
          clock,
          problems,
        }),
        ticketKeys: () => this.#ticketKeys,
        staples: this.staples,
        http2: options.http2,
        handshakeMs: options.handshakeMs,
        proxyProtocol: options.proxyProtocol ?? "off",
        headerMs: options.headerMs,
        recorder: createRecorder(records, tally, clock),
        metrics,
        clock,
        problems,
      }),
    );
  }

  /** As SIGHUP does with another `accelerator.lane`. */
  switchLane(usesIt: boolean): void {
    this.#words.switchLane(usesIt);
  }

  async listen(where: ListenOptions = anyPort): Promise<void> {
    this.port = await this.#listener.listen(where);
  }

  /** HTTPS. */
  async listenSecure(where: ListenOptions = anyPort): Promise<number> {
    return this.#listener.listenSecure(where);
  }

  rotateTicketKeys(): void {
    this.#ticketKeys = { current: randomBytes(48), previous: this.#ticketKeys.current };
    this.#listener.ticketKeysChanged();
  }

  get openConnections(): number {
    return this.#listener.openConnections;
  }

  publish(state: ServingState): void {
    this.#states.stage(state);
    this.#words.flip(state.version);
    this.#states.drop(state.version);
  }

  async finish(graceMs: number): Promise<void> {
    await this.#listener.finish(graceMs);
  }

  async drain(graceMs: number): Promise<void> {
    await this.#listener.drain({ graceMs });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** Listening, and serving `site` where one is given. */
export async function openEdge(
  options: EdgeOptions & { readonly site?: SiteInput; readonly views?: Views } = {},
): Promise<Edge> {
  const edge = new Edge(options);
  await edge.listen();
  if (options.site !== undefined) edge.publish(stateOf(1, options.site, options.views));
  return edge;
}

export type Origin = AsyncDisposable & { readonly url: string; readonly port: number };

/** `host`: an address of this machine. */
export async function openOrigin(handler: RequestListener, host = "127.0.0.1"): Promise<Origin> {
  const server = createServer(handler);
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, host, resolve);
  await promise;
  const { port } = server.address() as AddressInfo; // It listens on TCP.
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
    port,
    [Symbol.asyncDispose]: async () => {
      const { promise: closed, resolve } = Promise.withResolvers<void>();
      server.close(() => resolve());
      server.closeAllConnections();
      await closed;
    },
  };
}

export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  readonly text: string;
};

export type Asked = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Buffer;
  readonly host?: string;
};

/** Rejects when the answer breaks off. */
export async function ask(
  edge: { readonly port: number },
  path: string,
  asked: Asked = {},
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const request = httpRequest({
    host: "127.0.0.1",
    port: edge.port,
    path,
    method: asked.method ?? "GET",
    headers: { host: asked.host ?? host, ...asked.headers },
    agent: false,
  });
  request.once("error", reject);
  request.once("response", (response) => {
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.once("error", reject);
    response.once("end", () => {
      const body = Buffer.concat(chunks);
      const headers = Object.fromEntries(
        Object.entries(response.headers).map(([name, value]) => [name, value?.toString()]),
      );
      const { statusCode: status = 0, rawHeaders } = response;
      resolve({ status, headers, rawHeaders, body, text: body.toString() });
    });
  });
  request.end(asked.body);
  return promise;
}

/** Sends the bytes, one piece after the other, and collects what comes until the connection ends, or `enough` says so. */
export async function raw(
  edge: { readonly port: number },
  pieces: string | readonly string[],
  enough: (received: string) => boolean = () => false,
): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = connect(edge.port, "127.0.0.1");
  let received = "";
  socket.setEncoding("latin1");
  socket.on("data", (text: string) => {
    received += text;
    if (enough(received)) socket.destroy();
  });
  socket.once("error", () => {});
  socket.once("close", () => resolve());
  for (const piece of [pieces].flat()) socket.write(piece, "latin1");
  await promise;
  return received;
}
