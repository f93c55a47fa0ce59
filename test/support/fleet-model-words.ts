// Activations on all or none, as a model: instances of several deployments that die, come back, lose central, are too old, or cannot serve a version, at every
// step. Central is either a small one in memory, for very many walks, or the real store. What follows is what both are asked.

import type { ReceiptSeen } from "../../src/central/store/journal/proof.ts";
import type { Sha256 } from "../../src/core/ids.ts";

export type Place = { readonly site: number; readonly instance: string };

export type ModelEntry = {
  readonly seq: number;
  readonly kind: "viewset.prepare" | "viewset.withdrawn" | "viewset.activated";
  /** The version that it is about; none where something is withdrawn. */
  readonly version: number;
  readonly activationId: number;
};

export type ModelReceipt = Pick<ReceiptSeen, "seq" | "phase" | "detail">;

export type Shown = {
  readonly active: number | null;
  readonly activation: string | null;
  /** By site. */
  readonly states: ReadonlyMap<number, string>;
  /** The states of all activations on all or none, the oldest first. */
  readonly fleets: readonly { readonly version: number; readonly state: string }[];
};

export type ModelCentral = {
  /** `false`: nobody is connected. */
  begin(version: number, require: "each" | "all"): Promise<boolean>;
  greeted(place: Place): Promise<void>;
  journal(site: number): Promise<readonly ModelEntry[]>;
  received(place: Place, receipts: readonly ModelReceipt[]): Promise<void>;
  step(): Promise<void>;
  show(): Promise<Shown>;
};

/** What the world tells central, and its clock. */
export type ModelWorld = {
  readonly sites: readonly number[];
  readonly nowMs: () => number;
  readonly isLive: (site: number, instance: string) => boolean;
  /** When central was started last. */
  readonly sinceMs: () => number;
};

export const deadlineMs = 60_000;

/** Faults that a check must find. */
export const plantedFaults = [
  "decides without all votes",
  "ignores a no",
  "ignores a loss",
  "takes a snapshot for a yes",
  "votes before it holds",
  "forgets what it holds at a restart",
  "withdraws from one site only",
  "decides for one site only",
  "takes back at one site only",
  "tells no split",
  "serves what it prepared",
] as const;
export type PlantedFault = (typeof plantedFaults)[number];

/** The manifest of a version: its number. */
export function manifestOf(version: number): Sha256 {
  return version.toString(16).padStart(64, "0") as Sha256;
}

export function versionOf(manifest: string): number {
  return Number.parseInt(manifest, 16);
}
