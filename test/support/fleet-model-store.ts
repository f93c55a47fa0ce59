// The real store as the model's central: the same walks through its transactions, proofs and receipts.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { createSealer } from "../../src/base/seal.ts";
import { addDomain } from "../../src/central/store/content/domains.ts";
import { createDevloveFile } from "../../src/central/store/content/devlove-files.ts";
import {
  beginFleetActivation,
  stepFleetActivations,
  type InTouch,
} from "../../src/central/store/content/fleet-activations.ts";
import {
  activateVersion,
  listVersions,
  readBasis,
  versionNamed,
} from "../../src/central/store/content/viewsets.ts";
import { CustomerStore } from "../../src/central/store/engine/customer-store.ts";
import type { Store } from "../../src/central/store/engine/database.ts";
import { SharedCommits } from "../../src/central/store/engine/shared-commits.ts";
import type { Work } from "../../src/central/store/engine/work.ts";
import { noteSeen } from "../../src/central/store/journal/instances-seen.ts";
import { readJournal } from "../../src/central/store/journal/journal.ts";
import { linkById } from "../../src/central/store/journal/links.ts";
import { ReceiptIntake } from "../../src/central/store/journal/receipts.ts";
import { createSite } from "../../src/central/store/journal/sites.ts";
import { addCustomer } from "../../src/central/store/people/customers.ts";
import { openTestStore } from "./any-store.ts";
import {
  deadlineMs,
  manifestOf,
  versionOf,
  type ModelCentral,
  type ModelEntry,
  type ModelReceipt,
  type ModelWorld,
  type Place,
  type Shown,
} from "./fleet-model-words.ts";

const everything = { after: 0, limit: 1_000 };

export class StoreCentral implements ModelCentral, AsyncDisposable {
  readonly #world: ModelWorld;
  readonly #store: Store & AsyncDisposable;
  readonly #customers: CustomerStore;
  readonly #receipts: ReceiptIntake;
  /** The ids of the store, by the model's numbers. */
  readonly #sites = new Map<number, number>();
  #domainId = 0;

  private constructor(world: ModelWorld, store: Store & AsyncDisposable) {
    this.#world = world;
    this.#store = store;
    const now = (): Date => new Date(world.nowMs());
    const sealer = createSealer(Buffer.alloc(32, 7));
    this.#customers = new CustomerStore({ store, sealer, now, randomBytes });
    const never = async (): Promise<never> => {
      throw new Error("the model imports nothing");
    };
    this.#receipts = new ReceiptIntake({
      store,
      commits: new SharedCommits(store),
      now,
      blobs: { put: never, read: never, sizeOf: never, write: never } as never,
      judge: { devlove: never, manifest: never } as never,
      backendRules: {},
    });
  }

  static async open(world: ModelWorld, directory: string, versions: number): Promise<StoreCentral> {
    const now = (): Date => new Date(world.nowMs());
    const store = await openTestStore(join(directory, `${randomBytes(4).toString("hex")}.db`), now);
    const central = new StoreCentral(world, store);
    await central.#customers.transact(async (work) => {
      const owner = { customerId: await addCustomer(work, "model"), userId: 1 };
      const name = "model.example";
      const id = await addDomain(work, owner, { name, tags: [], deploymentSiteId: undefined });
      if (id === "taken") throw new Error("a new store has no domain");
      central.#domainId = id;
      for (let version = 1; version <= versions; version++)
        await createDevloveFile(work, id, `v${version}`, { schema: "devlove/1", content: "{}" });
      for (const site of world.sites) {
        const deploymentSiteId = await createSite(work, owner, []);
        central.#sites.set(site, deploymentSiteId);
        await linkById(work, { domainId: id, deploymentSiteId });
      }
    });
    return central;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store[Symbol.asyncDispose]();
  }

  async begin(version: number, require: "each" | "all"): Promise<boolean> {
    return this.#customers.transact(async (work) => {
      const viewsetId = await versionNamed(work, this.#domainId, `v${version}`);
      const basis = await readBasis(work.tx, this.#domainId, viewsetId ?? 0);
      if (basis === undefined) throw new Error(`no version ${version}`);
      const manifest = manifestOf(version);
      const domainId = this.#domainId;
      const outcome =
        require === "each"
          ? await activateVersion(work, domainId, basis, manifest)
          : await beginFleetActivation(
              work,
              { domainId, basis, manifest, deadlineMs },
              this.#inTouch(),
            );
      return outcome !== "nobody";
    });
  }

  async greeted({ site, instance }: Place): Promise<void> {
    const key = { deploymentSiteId: this.#idOf(site), instanceId: instance };
    await noteSeen(this.#store, [key], new Date(this.#world.nowMs()).toISOString());
  }

  async journal(site: number): Promise<readonly ModelEntry[]> {
    const all: ModelEntry[] = [];
    // The model counts the entries of the domain's lane alone; their places are told by `seq`.
    for (const { seq, kind, body } of await readJournal(this.#store, this.#idOf(site), 0, 10_000)) {
      if (!isModelKind(kind)) continue;
      const { manifest, activation_id: activationId } = body as {
        readonly manifest?: string;
        readonly activation_id?: number;
      };
      const version = manifest === undefined ? 0 : versionOf(manifest);
      all.push({ seq, kind, version, activationId: activationId ?? 0 });
    }
    return all;
  }

  async received({ site, instance }: Place, receipts: readonly ModelReceipt[]): Promise<void> {
    const given = receipts.map((receipt) => ({ ...receipt, took_ms: 0 }));
    await this.#receipts.save(this.#idOf(site), instance, given);
  }

  async step(): Promise<void> {
    await this.#customers.transact(async (work) => stepFleetActivations(work, this.#inTouch()));
  }

  async show(): Promise<Shown> {
    return this.#customers.transact(async (work) => {
      const versions = await listVersions(work, this.#domainId, everything);
      const active = versions.find(({ is_active }) => is_active);
      const states = (active?.deployments ?? []).map(
        ({ deployment_site_id: id, state }) => [this.#siteOf(id), state] as const,
      );
      return {
        active: active === undefined ? null : Number(active.name.slice(1)),
        activation: active?.activation ?? null,
        states: new Map(states),
        fleets: await this.#fleets(work),
      };
    });
  }

  async #fleets({ tx }: Work): Promise<Shown["fleets"]> {
    const rows = await tx
      .selectFrom("fleet_activations")
      .select(["manifest_blob", "state"])
      .orderBy("id")
      .execute();
    return rows.map(({ manifest_blob, state }) => ({ version: versionOf(manifest_blob), state }));
  }

  #inTouch(): InTouch {
    return {
      isLive: (id, instance) => this.#isLive(id, instance),
      sinceMs: this.#world.sinceMs(),
    };
  }

  #isLive(id: number, instance: string): boolean {
    return this.#world.isLive(this.#siteOf(id), instance);
  }

  #idOf(site: number): number {
    return this.#sites.get(site) ?? 0;
  }

  #siteOf(id: number): number {
    return [...this.#sites].find(([, own]) => own === id)?.[0] ?? 0;
  }
}

function isModelKind(kind: string): kind is ModelEntry["kind"] {
  return ["viewset.prepare", "viewset.withdrawn", "viewset.activated"].includes(kind);
}
