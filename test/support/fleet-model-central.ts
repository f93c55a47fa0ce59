// The small central of the model: the same rules as the store's, over lists in memory.

import { activationOf } from "../../src/central/store/content/viewsets.ts";
import { voteOf } from "../../src/central/store/content/fleet-records.ts";
import { lostAfterMs } from "../../src/central/store/content/fleet-activations.ts";
import {
  proofOf,
  type InstanceSeen,
  type ReceiptSeen,
} from "../../src/central/store/journal/proof.ts";
import { nextFleetStep, type Member } from "../../src/core/serving/fleet-activation.ts";
import {
  deadlineMs,
  type ModelCentral,
  type ModelEntry,
  type ModelReceipt,
  type ModelWorld,
  type Place,
  type PlantedFault,
  type Shown,
} from "./fleet-model-words.ts";

type Activation = {
  readonly id: number;
  readonly version: number;
  readonly deadline: number;
  state: "preparing" | "activated" | "failing" | "replaced" | "aborted" | "returned";
  before: number | null;
  readonly members: Map<string, Place>;
  readonly asked: Map<number, number>;
};

type Seen = Place & { lastSeenMs: number };

const keyOf = ({ site, instance }: Place): string => `${site} ${instance}`;

export class MemoryCentral implements ModelCentral {
  readonly #world: ModelWorld;
  readonly #fault: PlantedFault | undefined;
  readonly #journals: Map<number, ModelEntry[]>;
  readonly #receipts = new Map<string, Map<string, ReceiptSeen>>();
  readonly #instances = new Map<string, Seen>();
  readonly #activations: Activation[] = [];
  /** The place of the active version in each journal. */
  readonly #places = new Map<number, { readonly seq: number; readonly version: number }>();
  #active: number | null = null;

  constructor(world: ModelWorld, fault?: PlantedFault) {
    this.#world = world;
    this.#fault = fault;
    this.#journals = new Map(world.sites.map((site) => [site, []]));
  }

  async begin(version: number, require: "each" | "all"): Promise<boolean> {
    const live = [...this.#live(), ...this.#comingBack()];
    if (require === "all") {
      if (live.length === 0) return false;
      const open = this.#activations.find(({ state }) => state === "preparing");
      if (open?.version === version) return true;
    }
    this.#giveUpAll();
    if (require === "each") {
      this.#makeActive(version);
      return true;
    }
    const activation: Activation = {
      id: this.#activations.length + 1,
      version,
      deadline: this.#world.nowMs() + deadlineMs,
      state: "preparing",
      before: null,
      members: new Map(live.map((place) => [keyOf(place), place])),
      asked: new Map(),
    };
    this.#activations.push(activation);
    for (const site of this.#world.sites) this.#ask(activation, site);
    return true;
  }

  async greeted(place: Place): Promise<void> {
    this.#touch(place);
  }

  async journal(site: number): Promise<readonly ModelEntry[]> {
    return this.#journals.get(site) ?? [];
  }

  async received(place: Place, receipts: readonly ModelReceipt[]): Promise<void> {
    this.#touch(place);
    const own = this.#receipts.get(keyOf(place)) ?? new Map<string, ReceiptSeen>();
    this.#receipts.set(keyOf(place), own);
    for (const { seq, phase, detail } of receipts) {
      const key = `${seq} ${phase}`;
      const had = own.get(key);
      const isNewer = Number(detail["correction"] ?? 0) > Number(had?.detail["correction"] ?? 0);
      if (had === undefined || isNewer)
        own.set(key, { instanceId: place.instance, seq, phase, detail, tookMs: 0 });
      if (phase === "failed" && detail["code"] === "VIEWSET_PROBE_FAILED")
        this.#noteFailed(place.site, seq);
    }
  }

  async step(): Promise<void> {
    for (const activation of this.#activations)
      if (activation.state === "preparing") this.#stepOne(activation);
    for (const activation of this.#activations)
      if (activation.state === "failing") this.#takeBack(activation);
  }

  async show(): Promise<Shown> {
    const deployments = [...this.#places].map(([site, { seq }]) => {
      const proof = this.#proof(site, seq);
      const isAbsent = proof.instances.length === 0;
      return { deployment_site_id: site, state: isAbsent ? ("absent" as const) : proof.state };
    });
    const isOfFleet =
      this.#fault !== "tells no split" &&
      this.#activations.some(
        ({ version, state }) =>
          version === this.#active && (state === "activated" || state === "failing"),
      );
    return {
      active: this.#active,
      activation: this.#active === null ? null : activationOf(deployments, isOfFleet),
      states: new Map(deployments.map(({ deployment_site_id: site, state }) => [site, state])),
      fleets: this.#activations.map(({ version, state }) => ({ version, state })),
    };
  }

  #touch(place: Place): void {
    this.#instances.set(keyOf(place), { ...place, lastSeenMs: this.#world.nowMs() });
  }

  #live(): readonly Place[] {
    return [...this.#instances.values()].filter(({ site, instance }) =>
      this.#world.isLive(site, instance),
    );
  }

  #comingBack(): readonly Place[] {
    const sinceMs = this.#world.sinceMs();
    if (this.#world.nowMs() - sinceMs > lostAfterMs) return [];
    return [...this.#instances.values()].filter(
      ({ lastSeenMs }) => lastSeenMs >= sinceMs - 180_000 && lastSeenMs < sinceMs,
    );
  }

  #append(site: number, entry: Omit<ModelEntry, "seq">): number {
    const journal = this.#journals.get(site) ?? [];
    journal.push({ ...entry, seq: journal.length + 1 });
    return journal.length;
  }

  #ask(activation: Activation, site: number): void {
    const { version, id: activationId } = activation;
    activation.asked.set(
      site,
      this.#append(site, { kind: "viewset.prepare", version, activationId }),
    );
  }

  #stepOne(activation: Activation): void {
    for (const place of this.#live()) activation.members.set(keyOf(place), place);
    const toAskAgain = new Set<number>();
    const members = [...activation.members.values()].map((place) =>
      this.#member(activation, place, toAskAgain),
    );
    for (const site of toAskAgain) this.#ask(activation, site);
    const isPastDeadline = this.#world.nowMs() >= activation.deadline;
    const step = nextFleetStep({ members, isPastDeadline });
    if (step.kind === "abort") this.#giveUp(activation);
    if (step.kind !== "decide") return;
    const before = this.#active;
    this.#makeActive(activation.version);
    activation.state = "activated";
    activation.before = before === activation.version ? null : before;
  }

  #member(activation: Activation, place: Place, toAskAgain: Set<number>): Member {
    const { site, instance } = place;
    const seq = activation.asked.get(site) ?? 0;
    const told = this.#proof(site, seq).instances.find((one) => one.instanceId === instance);
    let vote = voteOf(told, seq, activation.id);
    const isCovered = told?.receipts.some(({ detail }) => detail["snapshot"] === true) === true;
    if (vote.kind === "awaited" && isCovered) {
      if (this.#fault === "takes a snapshot for a yes") vote = { kind: "yes" };
      else toAskAgain.add(site);
    }
    if (this.#fault === "decides without all votes" && vote.kind === "awaited")
      vote = activation.members.size > 1 ? { kind: "yes" } : vote;
    if (this.#fault === "ignores a no" && vote.kind === "no") vote = { kind: "yes" };
    const seen = this.#instances.get(keyOf(place))?.lastSeenMs ?? 0;
    const silentMs = Math.min(
      this.#world.nowMs() - seen,
      this.#world.nowMs() - this.#world.sinceMs(),
    );
    const isLost = !this.#world.isLive(site, instance) && silentMs > lostAfterMs;
    if (this.#fault === "ignores a loss" && isLost)
      return { deploymentSiteId: site, instanceId: instance, isLost: false, vote: { kind: "yes" } };
    return { deploymentSiteId: site, instanceId: instance, isLost, vote };
  }

  #proof(site: number, seq: number): ReturnType<typeof proofOf> {
    const instances: InstanceSeen[] = [];
    const receipts: ReceiptSeen[] = [];
    for (const seen of this.#instances.values()) {
      if (seen.site !== site) continue;
      const lastSeen = new Date(seen.lastSeenMs).toISOString();
      instances.push({ instanceId: seen.instance, lastSeen });
      for (const receipt of this.#receipts.get(keyOf(seen))?.values() ?? [])
        if (receipt.seq === seq || (receipt.seq > seq && receipt.detail["snapshot"] === true))
          receipts.push(receipt);
    }
    return proofOf(seq, instances, receipts, this.#world.nowMs());
  }

  #giveUpAll(): void {
    for (const activation of this.#activations)
      if (activation.state === "preparing") this.#giveUp(activation);
  }

  #giveUp(activation: Activation): void {
    activation.state = "aborted";
    const { id: activationId } = activation;
    for (const site of this.#sitesBut("withdraws from one site only"))
      this.#append(site, { kind: "viewset.withdrawn", version: 0, activationId });
  }

  #makeActive(version: number, sites = this.#sitesBut("decides for one site only")): void {
    for (const activation of this.#activations)
      if (activation.state === "activated" || activation.state === "failing")
        activation.state = "replaced";
    this.#active = version;
    for (const site of sites) {
      const seq = this.#append(site, { kind: "viewset.activated", version, activationId: 0 });
      this.#places.set(site, { seq, version });
    }
  }

  #noteFailed(site: number, seq: number): void {
    const place = this.#places.get(site);
    for (const activation of this.#activations)
      if (
        activation.state === "activated" &&
        place?.seq === seq &&
        place.version === activation.version
      )
        activation.state = "failing";
  }

  #takeBack(activation: Activation): void {
    const { before } = activation;
    if (before === null) {
      activation.state = "activated";
      return;
    }
    this.#giveUpAll();
    this.#makeActive(before, this.#sitesBut("takes back at one site only"));
    activation.state = "returned";
  }

  #sitesBut(fault: PlantedFault): readonly number[] {
    return this.#fault === fault ? this.#world.sites.slice(0, 1) : this.#world.sites;
  }
}
