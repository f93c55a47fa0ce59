// An order to all sites of a domain, on SQLite and on PostgreSQL, each commit on the disk: how long its one transaction takes, the processor time of central and of the
// server, how long central's thread is held up at most, how long a customer beside it waits for an order to one site, and what reading its proof costs.
// `--sites 2000,10000,50000`, `--rounds N` (3), `--receipts` (each site has an agent, which has receipted). `--marks`: in place of clears an address that is added to a list of bots,
// alone, and beside marks of another customer.

import { sql } from "kysely";
import { performance, monitorEventLoopDelay } from "node:perf_hooks";
import { join } from "node:path";
import { readClear } from "../src/central/api/clear-proof.ts";
import { createSealer } from "../src/base/seal.ts";
import { sleep } from "../src/base/wait.ts";
import { attachElements } from "../src/central/store/bots/bots.ts";
import { CustomerStore } from "../src/central/store/engine/customer-store.ts";
import { openStore, prepareStore, type Store } from "../src/central/store/engine/database.ts";
import { parts } from "../src/central/store/engine/parts.ts";
import { connectPostgresStore } from "../src/central/store/engine/postgres-store.ts";
import { clearsOfDomain, createClear } from "../src/central/store/journal/clears.ts";
import { parseRange } from "../src/core/addresses/ip.ts";
import { chainStart } from "../src/core/journal/journal-chain.ts";
import { postgresBin, PostgresServer } from "../test/support/postgres-server.ts";
import { tempDir } from "../test/support/temp-dir.ts";
import { Figures, percentile } from "./support/figures.ts";
import { fillWithFleet } from "./support/fleet-seed.ts";
import { cpuMsOf, cpuMsOfTree } from "./support/processor-time.ts";

const elementsMax = 1_000_000;
const sizesMeant = [2_000, 10_000, 50_000];
const at = (): string => new Date().toISOString();

const sealer = createSealer(Buffer.alloc(32, 7));

const never = new AbortController().signal;

type Domains = { readonly large: number; readonly small: number };
type Opened = {
  readonly store: Store;
  /** Processor time of what is outside of this process. */
  readonly serverMs: () => number;
  /** Transactions that were refused and run again. */
  readonly repeats: () => number;
};
type Engine = {
  readonly name: string;
  readonly open: (no: number, stack: AsyncDisposableStack) => Promise<Opened>;
};

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const sizes = listOf(args, "--sites") ?? sizesMeant;
  const [rounds = 3] = listOf(args, "--rounds") ?? [];
  const hasReceipts = args.includes("--receipts");
  const figures = new Figures(say);
  using dir = tempDir();
  await using stack = new AsyncDisposableStack();
  const engines: Engine[] = [
    {
      name: "SQLite",
      open: async (no, opened) => {
        const path = join(dir.path, `central-${no}.db`);
        return {
          store: opened.use(await openStore(path, () => new Date())),
          serverMs: () => 0,
          repeats: () => 0,
        };
      },
    },
  ];
  const bin = postgresBin();
  if (bin === undefined) say("without PostgreSQL: apt install postgresql");
  else engines.push(await startPostgres(bin, stack));
  for (const [no, sites] of sizes.entries())
    for (const { name, open } of engines) {
      await using opened = new AsyncDisposableStack();
      const engine = await open(no, opened);
      const domains = await seed(engine.store, sites);
      figures.head(`${name}: ${sites.toLocaleString("en")} sites, ${rounds} orders`);
      if (!args.includes("--marks"))
        await measureOrders(engine, domains, { rounds, hasReceipts }, figures);
      else
        for (const isAlone of [true, false])
          await measureMarks(engine, domains, { rounds, isAlone }, figures);
    }
}

function listOf(args: readonly string[], name: string): readonly number[] | undefined {
  const at = args.indexOf(name);
  return at < 0 ? undefined : args[at + 1]?.split(",").map(Number);
}

async function startPostgres(bin: string, stack: AsyncDisposableStack): Promise<Engine> {
  const server = stack.use(
    await PostgresServer.start(bin, {
      isDurable: true,
      settings: ["shared_buffers=256MB", "max_wal_size=4GB"],
    }),
  );
  return {
    name: "PostgreSQL",
    open: async (no, opened) => {
      await server.run("postgres", `CREATE DATABASE central_${no} TEMPLATE template0`);
      const place = server.place(`central_${no}`);
      let repeats = 0;
      const onRepeat = (): number => repeats++;
      const store = opened.use(connectPostgresStore({ place, random: Math.random, onRepeat }));
      const error = await prepareStore(store, () => new Date());
      if (error !== undefined) throw error;
      return { store, serverMs: () => cpuMsOfTree(server.pid), repeats: () => repeats };
    },
  };
}

async function measureOrders(
  { store, serverMs, repeats }: Opened,
  { large: domainId, small }: Domains,
  { rounds, hasReceipts }: { readonly rounds: number; readonly hasReceipts: boolean },
  figures: Figures,
): Promise<void> {
  const customers = customersOf(store);
  const took: number[] = [];
  const beside: number[] = [];
  const reads: number[] = [];
  const held: number[] = [];
  let [own, server] = [0, 0];
  for (let round = 0; round < rounds; round++) {
    const [ownBefore, serverBefore] = [cpuMsOf(process.pid), serverMs()];
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    await sleep(20, never);
    delay.reset();
    const began = performance.now();
    const ended = new AbortController();
    const others = othersBeside(customers, small, ended.signal);
    const clearId = await orderClear(customers, domainId);
    took.push(performance.now() - began);
    delay.disable();
    held.push(delay.max / 1e6);
    ended.abort();
    beside.push(...(await others));
    own += cpuMsOf(process.pid) - ownBefore;
    server += serverMs() - serverBefore;
    if (hasReceipts) await receiptAll(store, clearId);
    const reading = performance.now();
    await readClear(async (action) => customers.transact(action), 1, clearId);
    reads.push(performance.now() - reading);
  }
  figures.add("the transaction, median", percentile(took, 0.5), "ms");
  figures.add("and the longest", Math.max(...took), "ms");
  figures.add("processor time of central for each", own / rounds, "ms");
  figures.add("processor time of the server for each", server / rounds, "ms");
  figures.add("central's thread held up at most", Math.max(...held), "ms");
  figures.add("an order to one site beside it, p50", percentile(beside, 0.5), "ms");
  figures.add("and the longest", Math.max(...beside), "ms");
  figures.add("transactions that were run again", repeats(), "");
  figures.add("its proof read, median", percentile(reads, 0.5), "ms");
}

/** Each mark is told to the journals in its own transaction, as the first after a rest is. */
async function measureMarks(
  { store, serverMs, repeats }: Opened,
  { large, small }: Domains,
  { rounds, isAlone }: { readonly rounds: number; readonly isAlone: boolean },
  figures: Figures,
): Promise<void> {
  const customers = customersOf(store);
  const took: number[] = [];
  const beside: number[] = [];
  const held: number[] = [];
  const [ownBefore, serverBefore, repeatsBefore] = [cpuMsOf(process.pid), serverMs(), repeats()];
  for (let round = 0; round < rounds; round++) {
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    await sleep(20, never);
    delay.reset();
    const ended = new AbortController();
    const mark = async (): Promise<void> => orderMark(customers, small);
    const others = isAlone ? Promise.resolve([]) : repeatedBeside(mark, ended.signal);
    const began = performance.now();
    await orderMark(customers, large);
    took.push(performance.now() - began);
    delay.disable();
    held.push(delay.max / 1e6);
    ended.abort();
    beside.push(...(await others));
  }
  const what = isAlone ? "a mark alone" : "a mark beside another customer's marks";
  figures.add(`${what}: the transaction, median`, percentile(took, 0.5), "ms");
  figures.add("and the longest", Math.max(...took), "ms");
  figures.add("processor time of central", (cpuMsOf(process.pid) - ownBefore) / rounds, "ms");
  figures.add("processor time of the server", (serverMs() - serverBefore) / rounds, "ms");
  figures.add("central's thread held up at most", Math.max(...held), "ms");
  figures.add("transactions that were run again", repeats() - repeatsBefore, "");
  if (isAlone) return;
  figures.add("the other customer's marks meanwhile", beside.length, "");
  figures.add("one of them, p50", percentile(beside, 0.5), "ms");
  figures.add("and the longest", Math.max(...beside), "ms");
}

let marks = 0;

/** Adds an address that the list does not hold. */
async function orderMark(customers: CustomerStore, domainId: number): Promise<void> {
  const no = ++marks;
  const range = parseRange(`198.18.${no >> 8}.${no & 255}`);
  if (!range.ok) throw new Error(range.reason);
  const place = { domainId, host: "fan-out.example.com", set: "bad", bot: "list" } as const;
  await customers.run(async (work) => {
    return { keep: true, value: await attachElements(work, place, [range.range], elementsMax) };
  });
}

function customersOf(store: Store): CustomerStore {
  return new CustomerStore({
    store,
    sealer,
    now: () => new Date(),
    randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
  });
}

async function orderClear(customers: CustomerStore, domainId: number): Promise<string> {
  const host = "fan-out.example.com";
  const { value } = await customers.run(async (work) => {
    const named = { patterns: ["path:a"], named: {} };
    const planned = { host: null, patterns: ["path:a"] };
    return {
      keep: true,
      value: await createClear(work, { domainId, main: host, host, ...named, planned }),
    };
  }, clearsOfDomain(domainId));
  return value;
}

/** Orders to another customer's only site, one after the other. */
async function othersBeside(
  customers: CustomerStore,
  domainId: number,
  ended: AbortSignal,
): Promise<readonly number[]> {
  return repeatedBeside(async () => orderClear(customers, domainId), ended);
}

/** Returns how long each took. */
async function repeatedBeside(
  order: () => Promise<unknown>,
  ended: AbortSignal,
): Promise<readonly number[]> {
  const took: number[] = [];
  while (!ended.aborted) {
    await sleep(20, ended);
    const began = performance.now();
    await order();
    took.push(performance.now() - began);
  }
  return took;
}

/** A domain of so many sites, and one of another customer with a single one. */
async function seed(store: Store, sites: number): Promise<Domains> {
  await fillWithFleet(store, sealer, { customers: 2, domains: 2, sites });
  const { id: small } = await store
    .selectFrom("domains")
    .select("id")
    .where("customer_id", "=", 2)
    .executeTakeFirstOrThrow();
  const { id: large } = await store
    .selectFrom("domains")
    .select("id")
    .where("customer_id", "=", 1)
    .executeTakeFirstOrThrow();
  const { id } = await store
    .insertInto("deployment_sites")
    .values({
      customer_id: 2,
      created_by_user_id: 2,
      name16: "00000000000000aa",
      secret_sealed: sealer.seal("-", "-"),
      when_created: at(),
      when_deleted: null,
      journal_head: 0,
      journal_chain: chainStart,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  await store
    .insertInto("domain_links")
    .values({ domain_id: small, deployment_site_id: id, by_id: 1 })
    .execute();
  return { large, small };
}

/** Each site has an agent, which has applied the clear and removed what it hit. The engine has seen how many there are, as it does by itself within a minute. */
async function receiptAll(store: Store, clearId: string): Promise<void> {
  const places = await store
    .selectFrom("clear_deployments")
    .select(["deployment_site_id", "seq"])
    .where("clear_id", "=", clearId)
    .execute();
  for (const part of parts(places)) {
    await store
      .insertInto("instances")
      .values(
        part.map(({ deployment_site_id }) => ({
          deployment_site_id,
          instance_id: "i1",
          agent_version: "1",
          edge: null,
          applied_seq: 0,
          epoch: null,
          chain: null,
          oldest_unfinished: null,
          position_at: null,
          last_seen: at(),
          last_report: null,
          logs_confirmed_at: null,
        })),
      )
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    for (const phase of ["applied", "gone"] as const)
      await store
        .insertInto("receipts")
        .values(
          part.map((place) => ({
            ...place,
            instance_id: "i1",
            phase,
            detail: JSON.stringify({ clear_id: clearId, matched: 0, widened: false }),
            took_ms: 3,
            when_received: at(),
          })),
        )
        .execute();
  }
  await sql`ANALYZE`.execute(store);
}
