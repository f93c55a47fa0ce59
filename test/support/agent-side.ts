// The agents' side of central on real SQLite, a real log thread and a real listener on port 0, with a clock and rows of the test's own.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import { Health } from "../../src/base/health.ts";
import { Registry } from "../../src/base/metrics.ts";
import { silentLog, type Log } from "../../src/base/log.ts";
import { listenHttp } from "../../src/base/http-listener.ts";
import { createSealer } from "../../src/base/seal.ts";
import { createAgentApi } from "../../src/central/agents/agent-api.ts";
import { Hub, type HubDeps } from "../../src/central/agents/hub.ts";
import { LogThread } from "../../src/central/agents/log-client.ts";
import { createAgentMetrics } from "../../src/central/agents/metrics.ts";
import { openPurgeOrders } from "../../src/central/agents/purge-route.ts";
import { createLocalWakeBus, SharedWakes, type WakeBus } from "../../src/central/agents/wake.ts";
import type { Cluster } from "../../src/central/cluster/cluster.ts";
import { Judge } from "../../src/central/judging/judge.ts";
import { openAgentStore } from "../../src/central/store/journal/agent-store.ts";
import { openBlobs } from "../../src/central/store/content/blobs.ts";
import { CustomerStore } from "../../src/central/store/engine/customer-store.ts";
import type { Store } from "../../src/central/store/engine/database.ts";
import { appendJournal } from "../../src/central/store/journal/journal.ts";
import { secretContext } from "../../src/central/store/journal/site-secret.ts";
import { chainStart } from "../../src/core/journal/journal-chain.ts";
import type { JournalBody, JournalKind } from "../../src/wire/journal.ts";
import { testLogDatabase } from "./any-logs.ts";
import { openTestReader, openTestStore } from "./any-store.ts";
import type { Authority } from "../../src/central/settings/authority.ts";
import { tempDir } from "./temp-dir.ts";

export const name16 = "00112233445566aa";
export const secret16 = "0123456789abcdef0123456789abcdef";
export const sealer = createSealer(Buffer.alloc(32, 7));

/** Wall clock and monotonic clock that stand still until they are moved. */
export class TestClock {
  ms = Date.parse("2030-01-15T12:00:00.000Z");
  now = (): Date => new Date(this.ms);
  monotonicMs = (): number => this.ms;
}

export type AgentSide = Awaited<ReturnType<typeof startAgentSide>>;

export async function startAgentSide(
  options: {
    readonly stateDir?: string;
    /** Of another central that works on the same store. */
    readonly database?: string;
    readonly bus?: WakeBus;
    /** Joins the other centrals on that store; `bus` is not used then. */
    readonly join?: (store: Store) => Promise<Cluster>;
    readonly log?: Log;
    readonly hub?: Partial<HubDeps>;
    /** What hosts that join are told to trust. */
    readonly authority?: Authority;
  } = {},
) {
  await using stack = new AsyncDisposableStack();
  const stateDir = options.stateDir ?? stack.use(tempDir()).path;
  const database = options.database ?? join(stateDir, "central.db");
  const clock = new TestClock();
  const log = options.log ?? silentLog();
  const store = stack.use(await openTestStore(database, clock.now));
  const blobs = await openBlobs(join(stateDir, "blobs"), store, clock.now);
  mkdirSync(join(stateDir, "logs"), { recursive: true });
  const brokenLogs: string[] = [];
  const logDatabase = testLogDatabase(join(stateDir, "logs"));
  const thread = stack.use(
    new LogThread({
      entry: new URL("../../src/central/logger.ts", import.meta.url),
      directory: join(stateDir, "logs"),
      ...(logDatabase !== undefined && { database: logDatabase }),
      log,
      broken: (path) => brokenLogs.push(path),
    }),
  );
  const entry = new URL("../../src/central/judge.ts", import.meta.url);
  const judge = stack.use(new Judge({ entry, log, stop: new AbortController().signal }));
  const registry = new Registry();
  const metrics = createAgentMetrics(registry);
  const others = options.join === undefined ? undefined : stack.use(await options.join(store));
  const bus =
    others === undefined
      ? (options.bus ?? createLocalWakeBus())
      : stack.use(new SharedWakes({ ...others, store, log }));
  const agentStore = await openAgentStore({
    store,
    reader: stack.use(openTestReader(database)),
    blobs,
    judge,
    sealer,
    now: clock.now,
    backendRules: {},
  });
  const { now, monotonicMs } = clock;
  const hub = stack.use(
    new Hub({ store: agentStore, bus, metrics, log, monotonicMs, others, ...options.hub }),
  );
  const stop = new AbortController();
  const transactions = new CustomerStore({ store, sealer, now, randomBytes });
  const purges = stack.use(openPurgeOrders({ transactions, bus, metrics, monotonicMs }));
  const health = new Health(now);
  const api = createAgentApi({
    health,
    store: agentStore,
    transactions,
    authority: () => options.authority,
    blobs,
    bus,
    hub,
    purges,
    thread,
    metrics,
    log,
    now,
    monotonicMs,
    randomBytes,
    addressOf: (request) => String(request.headers["x-test-address"] ?? "192.0.2.1"),
    stop: stop.signal,
  });
  const listener = stack.use(
    await listenHttp(api.handle, { port: 0, host: "127.0.0.1" }, { graceMs: 100 }),
  );
  listener.server.on("upgrade", api.upgrade);
  stack.defer(async () => {
    stop.abort();
    await hub[Symbol.asyncDispose]();
  });
  const owned = stack.move();
  return {
    customers: transactions,
    url: `http://127.0.0.1:${listener.port}/agent-api/v1`,
    stateDir,
    clock,
    store,
    agentStore,
    blobs,
    thread,
    registry,
    health,
    hub,
    brokenLogs,
    bus,
    others,
    /** Appends an entry and wakes the channels. */
    append: async <K extends JournalKind>(siteId: number, kind: K, body: JournalBody<K>) => {
      const [entry] = await store
        .transaction()
        .execute(async (tx) => appendJournal(tx, [siteId], kind, body, now().toISOString()));
      bus.publish([siteId]);
      return entry?.seq ?? 0;
    },
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}

/** A customer's deployment site with one linked domain `www.example.test` (sub-domain `img.www.example.test`). */
export async function seedSite(store: Store, name = name16, secret = secret16) {
  const when_created = "2030-01-01T00:00:00.000Z";
  const { id: customerId } = await store
    .insertInto("customers")
    .values({ name: "Example", created_by_user_id: null, when_created })
    .returning("id")
    .executeTakeFirstOrThrow();
  const { id: siteId } = await store
    .insertInto("deployment_sites")
    .values({
      customer_id: customerId,
      created_by_user_id: 1,
      name16: name,
      secret_sealed: sealer.seal(secret, secretContext(name)),
      when_created,
      when_deleted: null,
      journal_head: 0,
      journal_chain: chainStart,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  const { id: domainId } = await store
    .insertInto("domains")
    .values({
      customer_id: customerId,
      created_by_user_id: 1,
      name: "www.example.test",
      link_tags: null,
      active_viewset_id: null,
      when_created,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  await store
    .insertInto("sub_domains")
    .values({
      domain_id: domainId,
      customer_id: customerId,
      name: "img.www.example.test",
      share_views_and_views_dir_with_main_domain: 1,
    })
    .execute();
  await store
    .insertInto("domain_links")
    .values({ domain_id: domainId, deployment_site_id: siteId, by_id: 1 })
    .execute();
  return { customerId, siteId, domainId };
}

/** An import that has begun, and its entry in the journal of the site; the entry's number. */
export async function startImport(
  side: Pick<AgentSide, "store" | "append">,
  { siteId, domainId }: { readonly siteId: number; readonly domainId: number },
  { id, name }: { readonly id: string; readonly name: string },
): Promise<number> {
  await side.store
    .insertInto("imports")
    .values({
      id,
      domain_id: domainId,
      deployment_site_id: siteId,
      viewset_name: name,
      state: "started",
      error: null,
      without_site: null,
      viewset_id: null,
      files: null,
      bytes: null,
      when_started: "2030-01-15T11:00:00.000Z",
      when_ended: null,
    })
    .execute();
  return side.append(siteId, "viewset.import", { import_id: id, domain: "www.example.test" });
}
