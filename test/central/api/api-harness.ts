// The customer API over a real HTTP server and a real store in a directory of the test's own; the rest of central is played by fakes.

import { createHash, randomBytes } from "node:crypto";
import { request as httpRequest, type Server } from "node:http";
import { join } from "node:path";
import { listenHttp } from "../../../src/base/http-listener.ts";
import { silentLog, type Log } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { openPatternCheck } from "../../../src/base/pattern-check.ts";
import { createSealer } from "../../../src/base/seal.ts";
import { createChangeBus, type ChangeBus } from "../../../src/central/agents/changes.ts";
import { createRateLimit, type RateLimit } from "../../../src/central/agents/rate-limit.ts";
import { createLocalWakeBus, type WakeBus } from "../../../src/central/agents/wake.ts";
import { EventStreams, type EventStreamsDeps } from "../../../src/central/api/event-streams.ts";
import { createCustomerApi, type CustomerApiDeps } from "../../../src/central/api/customer-api.ts";
import { describedDocument } from "../../../src/central/api/http/described.ts";
import { Judge } from "../../../src/central/judging/judge.ts";
import { CustomerStore } from "../../../src/central/store/engine/customer-store.ts";
import { openPackageFiles } from "../../../src/central/store/packages/package-files.ts";
import type { Store } from "../../../src/central/store/engine/database.ts";
import { readJournal } from "../../../src/central/store/journal/journal.ts";
import { AccelError } from "../../../src/core/faults.ts";
import { analyticsShape } from "../../../src/wire/customer/analytics.ts";
import type { LogLine } from "../../../src/wire/customer/incoming-logs.ts";
import { RequestEntry, requestDetailShape } from "../../../src/wire/customer/requests.ts";
import { shape } from "../../../src/wire/customer/shape.ts";
import { parseSha256, type Sha256 } from "../../../src/core/ids.ts";
import { centralsMeant, openTestStore } from "../../support/any-store.ts";
import { createContract, hold } from "../../support/api-contract.ts";
import { tempDir } from "../../support/temp-dir.ts";
import type {
  AnalyticsAnswer,
  AnalyticsQuery,
} from "../../../src/central/agents/analytics-view.ts";
import type {
  FindQuery,
  FoundRequests,
  RecordQuery,
} from "../../../src/central/agents/log-finder.ts";
import type { LogPage, LogQuery } from "../../../src/central/agents/log-reader.ts";
import type { ChannelTests, Ports, TestOutcome } from "../../../src/central/api/deps.ts";

const judgeEntry = new URL("../../../src/central/judge.ts", import.meta.url);

/** Every answer that passes through is held against the document. */
const contract = createContract(describedDocument());

export class FakeBlobs {
  readonly held = new Map<Sha256, Uint8Array>();

  async put(bytes: Uint8Array): Promise<Sha256> {
    const sha256 = parseSha256(createHash("sha256").update(bytes).digest("hex"));
    if (sha256 === undefined) throw new TypeError("a digest is a digest");
    this.held.set(sha256, bytes);
    return sha256;
  }

  async read(sha256: Sha256): Promise<Uint8Array | undefined> {
    return this.held.get(sha256);
  }

  async write(body: AsyncIterable<Uint8Array>): Promise<Sha256> {
    return this.put(Buffer.concat(await Array.fromAsync(body)));
  }

  json(sha256: unknown): unknown {
    const digest = parseSha256(sha256);
    const bytes = digest === undefined ? undefined : this.held.get(digest);
    return bytes === undefined ? undefined : JSON.parse(Buffer.from(bytes).toString("utf8"));
  }
}

export class FakeReceipts {
  #waiting: (() => void)[] = [];
  /** How often somebody began to wait. */
  asked = 0;

  async next(signal: AbortSignal): Promise<void> {
    this.asked++;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve());
    return promise;
  }

  stored(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** Records by `<site>/<domain>`, newest first; the cursor is a position. */
export class FakeLogs {
  readonly records = new Map<string, readonly Omit<LogLine, "deployment_id">[]>();
  readonly queries: LogQuery[] = [];
  readonly searches: FindQuery[] = [];
  /** Requests by `<domain>/<request_id>`. */
  readonly details = new Map<string, object>();
  /** What a search is answered. */
  found: FoundRequests = {
    entries: [JSON.stringify(exampleOf(shape(RequestEntry)))],
    scannedUntil: 0,
    follow: "2026-11-18.90210",
    next: undefined,
  };
  failure: Error | undefined;

  async find(query: FindQuery): Promise<FoundRequests> {
    this.searches.push(query);
    if (this.failure !== undefined) throw this.failure;
    return this.found;
  }

  /** Puts an example where it is found. */
  addDetail(domain: string, request_id: string): void {
    this.details.set(`${domain}/${request_id}`, { ...exampleOf(requestDetailShape), request_id });
  }

  async record({ domain, requestId }: RecordQuery): Promise<string | undefined> {
    if (this.failure !== undefined) throw this.failure;
    const detail = this.details.get(`${domain}/${requestId}`);
    return detail === undefined ? undefined : JSON.stringify(detail);
  }

  async read(query: LogQuery): Promise<LogPage> {
    this.queries.push(query);
    if (this.failure !== undefined) throw this.failure;
    const after = query.after ?? "0";
    if (!/^\d+$/.test(after)) throw new AccelError("NOT_FOUND", "no such cursor");
    const all = this.records.get(`${query.deploymentSiteId}/${query.domain}`) ?? [];
    const end = Number(after) + query.limit;
    const shown = all.slice(Number(after), end);
    const lines = shown.map((record) => ({ ...record, deployment_id: query.deploymentSiteId }));
    const logs = JSON.stringify(lines);
    return end < all.length ? { logs, next: String(end) } : { logs };
  }
}

const exampleOf = ({ schema }: { readonly schema: object }): object =>
  Object(Array.of<unknown>(...Object(schema).examples)[0]) as object;

/** Answers each question with one text, which tests may change. */
export class FakeAnalytics {
  readonly queries: AnalyticsQuery[] = [];
  failure: Error | undefined;
  answer: ((query: AnalyticsQuery) => AnalyticsAnswer) | undefined;

  async read(query: AnalyticsQuery): Promise<AnalyticsAnswer> {
    this.queries.push(query);
    if (this.failure !== undefined) throw this.failure;
    const [example] = analyticsExamples;
    const { domain, step } = query;
    return (
      this.answer?.(query) ?? {
        kind: "numbers",
        text: JSON.stringify({ ...example, domain, step }),
      }
    );
  }
}

const analyticsExamples = Array.of<unknown>(...Object(analyticsShape.schema).examples).map(
  (one) => Object(one) as object,
);

/** Answers each test of a channel, and keeps what was asked. */
export class FakeChannelTests implements ChannelTests {
  readonly asked: unknown[] = [];
  outcome: TestOutcome = { kind: "queued", messages: 1 };

  async chat(...[, asked, channel]: Parameters<ChannelTests["chat"]>): Promise<TestOutcome> {
    this.asked.push({ ...asked, ...channel });
    return this.outcome;
  }

  async email(...[, asked]: Parameters<ChannelTests["email"]>): Promise<TestOutcome> {
    this.asked.push(asked);
    return this.outcome;
  }
}

export type Reply = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
};

type Options = {
  readonly token?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as is. */
  readonly raw?: string | Uint8Array;
};

export type Api = AsyncDisposable & {
  readonly port: number;
  readonly store: Store;
  readonly packagesDir: string;
  /** What streams of events are told. */
  readonly changes: ChangeBus;
  readonly wakes: WakeBus;
  /** Aborted, central stops. */
  readonly stopping: AbortController;
  /** Has whoever still waits answered at once. */
  readonly late: AbortController;
  readonly server: Server;
  /** How many connections its server has. */
  readonly connections: () => Promise<number>;
  readonly blobs: FakeBlobs;
  readonly receipts: FakeReceipts;
  readonly logs: FakeLogs;
  readonly analytics: FakeAnalytics;
  readonly channelTests: FakeChannelTests;
  readonly live: Set<number>;
  /** Instances without a link, of deployments that are live. */
  readonly away: Set<string>;
  /** Sites whose agents are between two channels. */
  readonly expected: Set<number>;
  /** Sites whose agents poll. */
  readonly polling: Set<number>;
  /** What connected instances answer to a dry run. */
  readonly dryRuns: Map<number, Awaited<ReturnType<Ports["live"]["dryRun"]>>>;
  /** Whether the bucket takes no files. */
  takesNothing: boolean;
  readonly progress: Map<string, ReturnType<Ports["live"]["importProgress"]>>;
  readonly woken: number[][];
  readonly closed: number[];
  clock: Date;
  /** Since when agents can have connected. */
  sinceMs: number;
  /** Awaited before each transaction of the API. */
  gate: (() => Promise<void>) | undefined;
  call(method: string, path: string, options?: Options): Promise<Reply>;
  /** A customer of its own. */
  trial(username: string): Promise<string>;
  /** The kinds and bodies of a site's journal from a position on. */
  journal(siteId: number, after?: number): Promise<readonly { kind: string; body: unknown }[]>;
};

const settings: CustomerApiDeps["settings"] = {
  trustedProxies: ["127.0.0.1"],
  trialsPerAddress: 30,
  trialsTotal: 100,
  marksPerSecond: 200,
  marksBurst: 20_000,
  botElements: 1_000_000,
  packages: {
    baseUrl: "https://central.example.com",
    sizeMax: 2 ** 20,
    bootstrapperUrl: undefined,
    versions: undefined,
    images: undefined,
  },
  recoveriesPerAddress: 20,
  sendsMail: true,
  privateHooksAllowed: false,
  privateSourcesAllowed: false,
  authority: () => undefined,
  devlove: {},
};

export async function openApi(
  changed: Partial<CustomerApiDeps["settings"]> = {},
  log: Log = silentLog(),
  eventTimes: EventStreamsDeps["times"] = {},
): Promise<Api> {
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir());
  const api: Pick<Api, "clock" | "gate" | "sinceMs" | "takesNothing"> = {
    sinceMs: 0,
    takesNothing: false,
    clock: new Date("2031-05-06T07:08:09.010Z"),
    gate: undefined,
  };
  const now = (): Date => api.clock;
  const store = stack.use(await openTestStore(join(dir.path, "central.db"), now));
  const dryRuns: Api["dryRuns"] = new Map();
  const [blobs, receipts, logs] = [new FakeBlobs(), new FakeReceipts(), new FakeLogs()];
  const [analytics, channelTests] = [new FakeAnalytics(), new FakeChannelTests()];
  const [polling, away] = [new Set<number>(), new Set<string>()];
  const expected = new Set<number>();
  const [live, woken, closed] = [new Set<number>(), new Array<number[]>(), new Array<number>()];
  const progress: Api["progress"] = new Map();
  const sealer = createSealer(Buffer.alloc(32, 7));
  const customerStore = new CustomerStore({
    store,
    sealer,
    now,
    randomBytes,
  });
  const stopping = new AbortController();
  const [changes, wakes] = [createChangeBus(), createLocalWakeBus()];
  const events = stack.use(
    new EventStreams({
      store: customerStore,
      changes,
      wakes,
      log,
      now,
      monotonicMs: () => performance.now(),
      random: () => 0,
      stop: stopping.signal,
      times: eventTimes,
    }),
  );
  const packages = await openPackageFiles(join(dir.path, "packages"), store);
  /** Ends what still waits. */
  const late = new AbortController();
  const judge = stack.use(new Judge({ entry: judgeEntry, log, stop: stopping.signal }));
  const patterns = stack.use(openPatternCheck());
  const limits = new SharedLimits(() => api.clock.getTime());
  const openOne = async (own: CustomerStore) => {
    const { rateLimit } = limits.ofOne();
    const listener = createCustomerApi({
      store: {
        run: async (action) => {
          await api.gate?.();
          return own.run(action);
        },
        transact: async (action) => {
          await api.gate?.();
          return own.transact(action);
        },
      },
      ports: {
        changes,
        events,
        journal: { wake: (ids) => void woken.push([...ids]) },
        live: {
          get sinceMs() {
            return api.sinceMs;
          },
          isLive: (id, instance) => live.has(id) && !away.has(instance ?? ""),
          isExpected: (id) => expected.has(id),
          isInTouch: (id, instance) => (live.has(id) && !away.has(instance)) || polling.has(id),
          silentMs: (id, instance) => (live.has(id) && !away.has(instance) ? 7_000 : undefined),
          dryRun: async (id) => dryRuns.get(id) ?? [],
          importProgress: (id) => progress.get(id),
          closeSite: (id) => void closed.push(id),
        },
        receipts,
        logs,
        analytics,
        channelTests,
        blobs,
        objects: { takesNothing: () => api.takesNothing },
        packages,
        judge,
        patterns,
      },
      now,
      randomBytes,
      rateLimit,
      settings: { ...settings, ...changed },
      log,
      registry: new Registry(),
      stop: stopping.signal,
      late,
    });
    return stack.use(await listenHttp(listener, { host: "127.0.0.1", port: 0 }, { graceMs: 100 }));
  };
  const { port, server } = await openOne(customerStore);
  const ports = [port];
  for (let no = 1; no < centralsMeant(); no++) {
    const other = stack.use(await openTestStore(join(dir.path, "central.db"), now));
    const another = await openOne(new CustomerStore({ store: other, sealer, now, randomBytes }));
    ports.push(another.port);
  }
  const portOfAny = (): number => ports[Math.floor(Math.random() * ports.length)] ?? port;
  const held = stack.move();
  return Object.assign(api, {
    port,
    server,
    store,
    packagesDir: join(dir.path, "packages"),
    changes,
    wakes,
    stopping,
    late,
    /** How many connections its server has. */
    connections: async (): Promise<number> => {
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
      return promise;
    },
    blobs,
    receipts,
    dryRuns,
    logs,
    analytics,
    channelTests,
    live,
    away,
    expected,
    polling,
    progress,
    woken,
    closed,
    call: async (method: string, path: string, options?: Options) =>
      send(portOfAny(), method, path, options),
    trial: async (username: string) => {
      const { body } = await send(portOfAny(), "POST", "/trial/", { body: { username } });
      return member(body, "token");
    },
    journal: async (siteId: number, after = 0) =>
      (await readJournal(store, siteId, after, 1_000)).map(({ kind, body }) => ({ kind, body })),
    [Symbol.asyncDispose]: async () => held.disposeAsync(),
  });
}

/** The limits of several centrals as if they were one: how a limit is divided is no concern of those who test what it allows. */
class SharedLimits {
  readonly #nowMs: () => number;
  readonly #limits: RateLimit[] = [];

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Each central makes the same limits in the same order. */
  ofOne(): Pick<CustomerApiDeps, "rateLimit"> {
    let no = 0;
    return {
      rateLimit: (limit) => (this.#limits[no++] ??= createRateLimit(limit, this.#nowMs)),
    };
  }
}

/** A call of the API at a port; the answer is held against the document. */
export async function send(
  port: number,
  method: string,
  path: string,
  { token, body, raw, headers = {} }: Options = {},
): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const request = httpRequest(
    {
      port,
      host: "127.0.0.1",
      method,
      path: path.startsWith("/presentation-api") ? path : `/presentation-api/v1${path}`,
      headers: {
        ...(payload !== undefined && { "content-type": "application/json" }),
        ...(token !== undefined && { authorization: `Token ${token}` }),
        ...headers,
      },
      agent: false,
    },
    (response) => {
      const chunks: Buffer[] = [];
      const isStream = response.headers["content-type"] === "text/event-stream";
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        // A stream has no end of its own; its beginning is the answer.
        if (isStream) request.destroy();
      });
      response.on("error", (error) => (isStream ? undefined : reject(error)));
      response.on(isStream ? "close" : "end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        const reply = {
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: text === "" || isStream ? text || undefined : JSON.parse(text),
        };
        try {
          hold(contract, { method, path, ...reply });
          resolve(reply);
        } catch (error) {
          reject(error);
        }
      });
    },
  );
  request.on("error", reject);
  request.end(payload);
  return promise;
}

/** A member of an answer as a text; fails the test where there is none. */
export function member(body: unknown, name: string): string {
  const value: unknown =
    typeof body === "object" && body !== null
      ? Object.entries(body).find(([key]) => key === name)?.[1]
      : undefined;
  if (typeof value !== "string" && typeof value !== "number")
    throw new Error(`no ${name} in ${JSON.stringify(body)}`);
  return String(value);
}
