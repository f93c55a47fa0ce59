// An agent around steering: agent.db and set store are real, the rest are small fakes that write down in which order they are called.
//
// `Disk` outlives a crash, `Rig` is one life of the process. Visitors never rest: whatever is served is cached at once, so that what was dropped too early shows.

import { sameRules } from "../../support/same-rules.ts";
import { SetWatch } from "../../../src/agent/bots/sets/set-watch.ts";
import { SetStore } from "../../../src/agent/bots/sets/set-store.ts";
import { Activations } from "../../../src/agent/steering/activation.ts";
import { createAppliers, type SteeringPorts } from "../../../src/agent/steering/appliers.ts";
import type { ClearGone } from "../../../src/agent/cache/clearing/clears.ts";
import type { Correction } from "../../../src/agent/link/agent-db.ts";
import type { EntryOutcome } from "../../../src/agent/link/entry-outcome.ts";
import type { Judged, Viewsets } from "../../../src/agent/viewset/viewsets.ts";
import type { WorkerPool } from "../../../src/agent/accelerator/pool/workers.ts";
import { ReleaseBooks, type BookDocuments } from "../../../src/agent/steering/release-books.ts";
import { ReleaseWatch } from "../../../src/agent/steering/release-watch.ts";
import { SetChanges } from "../../../src/agent/steering/set-changes.ts";
import { restoreState, type RestorePorts } from "../../../src/agent/steering/restore.ts";
import { LinkedDomains, Serving } from "../../../src/agent/steering/serving.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { Mutex } from "../../../src/base/mutex.ts";
import type { Json } from "../../../src/core/journal/canonical-json.ts";
import type { LocalSite, ReadyViewset } from "../../../src/core/serving/compose-state.ts";
import { AccelError } from "../../../src/core/faults.ts";
import type { Sha256 } from "../../../src/core/ids.ts";
import type { Probe, ProbeAnswer } from "../../../src/core/serving/plan-probes.ts";
import { nothingServed, type ServingState } from "../../../src/core/serving/serving-state.ts";
import { tablesOf } from "../../support/bot-tables.ts";
import type { JournalBody, JournalKind } from "../../../src/wire/journal.ts";
import { namesOf, type Cleared, type Disk } from "./disk.ts";
import { digestOf, FakeCentral } from "./fake-sets.ts";

export const badManifest = digestOf("bad");

type Pool = Pick<WorkerPool, "publish" | "rehearse" | "probe" | "left">;

export class Rig {
  readonly disk: Disk;
  readonly steps: string[] = [];
  readonly central: FakeCentral;
  readonly locals = new Map<string, LocalSite>();
  /** By clear id: who is told when more is known of it. */
  readonly lateClears = new Map<string, (gone: ClearGone) => void>();
  readonly health = new Health(() => new Date(0));
  readonly registry = new Registry();
  readonly watch = new SetWatch({
    health: this.health,
    registry: this.registry,
    log: silentLog(),
    now: () => new Date(0),
  });
  readonly serving: Serving;
  readonly ports: SteeringPorts;
  /** Called at each step with its number and name; a throw is a crash or a fault at that place. */
  onStep: (no: number, name: string) => void = () => undefined;
  /** Awaited by whatever waits; lets a test hold something up. */
  hold: (name: string) => Promise<void> = async () => undefined;
  served: ServingState = nothingServed;
  readonly books: ReleaseBooks;
  readonly releases: ReleaseWatch;
  readonly documents: BookDocuments;
  readonly pool: Pool = this.#pool();
  /** What the last probes were about. */
  staged: ServingState | undefined;
  nowMs = 0;
  /** Begun: domain, manifest. */
  readonly trials: (readonly [string, Sha256])[] = [];
  corrected = 0;
  /** Of files, that no thread has any more. */
  readonly tablesLeft: SharedArrayBuffer[] = [];
  /** What a worker finds; undefined: as the manifest says. */
  answer: (probe: Probe) => ProbeAnswer | undefined = () => undefined;

  constructor(disk: Disk, central: FakeCentral = new FakeCentral(), release = "1.0.0") {
    this.disk = disk;
    this.central = central;
    const sets = new SetStore(disk.db.sqlite);
    const documents = {
      get: (key: string) => disk.db.get(key),
      keys: (prefix: string) => disk.db.keys(prefix),
      put: (
        changes: Readonly<Record<string, Json | null>>,
        corrections?: readonly Correction[],
      ) => {
        this.#step(`put ${namesOf(changes)}`);
        disk.db.put(changes, corrections);
        this.#step("put done");
      },
    };
    disk.db.corrected.follow(() => this.corrected++);
    this.serving = new Serving({
      linked: new LinkedDomains(),
      documents,
      sets,
      tables: tablesOf(disk.db.sqlite),
      locals: { get: (domain) => this.locals.get(domain) },
      pool: this.pool,
      queryRules: sameRules,
      now: () => new Date(this.nowMs),
      onTableLeft: (table) => this.tablesLeft.push(table),
    });
    this.books = new ReleaseBooks(documents, release);
    this.documents = documents;
    this.releases = new ReleaseWatch({
      health: this.health,
      registry: this.registry,
      log: silentLog(),
    });
    const activations = new Activations({
      serving: this.serving,
      documents,
      viewsets: this.#viewsets(),
      books: this.books,
      watch: this.releases,
      keep: 3,
      now: () => new Date(this.nowMs),
      onTrial: (...on) => this.trials.push(on),
    });
    const ownSets = Object.assign(Object.create(sets) as SetStore, {
      applyDelta: (body: Parameters<SetStore["applyDelta"]>[0]) => {
        this.#step("delta");
        return sets.applyDelta(body);
      },
      replace: async (...args: Parameters<SetStore["replace"]>) => {
        this.#step(`replace ${args[0].kind}/${args[0].host}`);
        await sets.replace(...args);
      },
      refusal: (...args: Parameters<SetStore["refusal"]>) => sets.refusal(...args),
      keepOnly: (hosts: ReadonlySet<string>) => {
        this.#step("keep sets");
        sets.keepOnly(hosts);
      },
      list: () => sets.list(),
    });
    this.ports = {
      serving: this.serving,
      documents,
      sets: ownSets,
      watch: this.watch,
      setChanges: new SetChanges({
        sets: ownSets,
        client: central,
        contents: central,
        watch: this.watch,
        serving: this.serving,
      }),
      viewsets: this.#viewsets(),
      activations,
      epoch: () => disk.db.ledger.position.epoch,
      index: this.#index(),
      lateDrops: { spreadS: 600, plan: (of) => this.#step(`drop later ${of.join(" ")}`) },
      locals: { look: async () => this.#wait("look") },
      vault: {
        changeKeys: async () => ({ phase: "applied", detail: {} }),
        changeCertificates: async () => ({ phase: "applied", detail: {} }),
      },
    };
  }

  async apply<K extends JournalKind>(
    kind: K,
    body: JournalBody<K>,
    seq = 1,
  ): Promise<EntryOutcome> {
    const applier = createAppliers(this.ports)[kind];
    // Kind and body belong together by the signature.
    const entry = { seq, at: "", kind, body } as unknown as Parameters<typeof applier>[0];
    return applier(entry, new AbortController().signal);
  }

  get restorePorts(): RestorePorts {
    const restore: RestorePorts["viewsets"]["restore"] = async (manifest) => {
      if (this.tornManifests.has(manifest)) return undefined;
      return { ready: this.#viewset(manifest), isWhole: !this.holedManifests.has(manifest) };
    };
    return {
      serving: this.serving,
      documents: this.disk.db,
      viewsets: Object.assign(this.#viewsets(), { restore }),
      watch: this.releases,
      health: this.health,
      log: silentLog(),
      random: () => 0,
      stop: new AbortController().signal,
    };
  }

  /** Files of versions that have some. */
  readonly tables = new Map<Sha256, SharedArrayBuffer>();
  /** Without manifest or devlove, and without some file. */
  readonly tornManifests = new Set<Sha256>();
  readonly holedManifests = new Set<Sha256>();

  /** What the rules of this release refuse. */
  readonly outdated = new Set<Sha256>();
  /** Taken and not given back. */
  rooms = 0;

  /** As after a start. */
  async boot(): Promise<this> {
    await restoreState(this.restorePorts);
    this.steps.length = 0;
    return this;
  }

  servedHosts(): readonly string[] {
    return this.served.domains.flatMap(({ name, hosts }) =>
      hosts.map((host) => `${host.name} of ${name}`),
    );
  }

  #step(name: string): void {
    this.steps.push(name);
    this.onStep(this.steps.length, name);
  }

  async #wait(name: string): Promise<void> {
    this.#step(name);
    await this.hold(name);
  }

  /** As the real one: one at a time, staged, committed, flipped. */
  #pool(): Pool {
    const mutex = new Mutex();
    let nextVersion = 1;
    return {
      left: async () => this.hold("left"),
      probe: async (probes) => [probes.map((probe) => this.#answerTo(probe))],
      rehearse: async (build, inspect) =>
        mutex.run(async () => {
          this.staged = build(nextVersion++);
          await this.#wait("rehearse");
          await inspect(async (probes) => probes.map((probe) => this.#answerTo(probe)));
        }),
      publish: async (build, commit, inspect) =>
        mutex.run(async () => {
          const state = build(nextVersion++);
          this.staged = state;
          await this.#wait("stage");
          await inspect?.(async (probes) => probes.map((probe) => this.#answerTo(probe)));
          commit?.();
          this.#step("flip");
          this.served = state;
          for (const host of this.servedHosts()) this.disk.cached.add(host);
          return state.version;
        }),
    };
  }

  #answerTo(probe: Probe): ProbeAnswer {
    return this.answer(probe) ?? { kind: "none" };
  }

  #viewset(manifest: Sha256): ReadyViewset {
    return {
      manifest,
      devlove: { domains: {} },
      table: this.tables.get(manifest) ?? null,
      ...(this.outdated.has(manifest) && { objections: "no such key" }),
    };
  }

  #viewsets(): Pick<Viewsets, "prepare" | "dropDamaged" | "importSite" | "letGo"> {
    return {
      prepare: async (manifest, _names, _signal, judged?: Judged) => {
        await this.#wait("prepare");
        if (manifest === badManifest || (judged !== "as taken" && this.outdated.has(manifest)))
          throw new AccelError("VIEWSET_INVALID", "no such key");
        this.rooms++;
        return { ...this.#viewset(manifest), [Symbol.dispose]: () => void this.rooms-- };
      },
      letGo: () => this.#step("let go"),
      dropDamaged: async (files) => this.#wait(`drop ${[...files].join(" ")}`),
      importSite: async (_, { name }) => {
        await this.#wait("import");
        if (!this.locals.has(name)) throw new AccelError("IMPORT_NO_SITE", "no views_dir");
        return {
          manifest: digestOf("imported"),
          files: 3,
          bytes: 100,
          left_out: 0,
          left_out_names: [],
        };
      },
    };
  }

  #index(): SteeringPorts["index"] {
    const drop = async (name: string, matches: (host: string) => boolean) => {
      await this.#wait(name);
      for (const host of this.disk.cached) if (matches(host)) this.disk.cached.delete(host);
      this.#step(`${name} done`);
      return { removed: 0 };
    };
    return {
      clear: ({ clearId, patterns }) => {
        const applied = this.#clear(clearId, patterns ?? []);
        return {
          applied,
          gone: applied.then(({ matched }) => ({
            removed: matched,
            blockedInFlight: 0,
            goneMs: 2,
            verified: true,
            left: 0,
          })),
          onLate: (listener) => void this.lateClears.set(clearId, listener),
        };
      },
      dropDomain: async (domain) =>
        drop(`drop ${domain}`, (host) => host.endsWith(` of ${domain}`)),
      dropHost: async (host) => drop(`drop host ${host}`, (one) => one.startsWith(`${host} of `)),
    };
  }

  async #clear(clearId: string, patterns: readonly string[]): Promise<Cleared> {
    await this.#wait("clear");
    if (patterns.includes("bad")) throw new AccelError("PATTERN_INVALID", "no such column");
    const result = this.disk.clears.get(clearId) ?? {
      clearNo: 1,
      matched: patterns.length,
      widened: false,
      invisibleMs: 1,
    };
    this.disk.clears.set(clearId, result);
    this.#step("clear done");
    return result;
  }
}
