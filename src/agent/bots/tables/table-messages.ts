// What main and the table thread say to each other. Both are of one build, so nothing is validated.

import type { SetElement } from "../../../core/addresses/set-digest.ts";
import type { BotSet } from "../../../wire/journal.ts";

export type SetVersion = {
  readonly host: string;
  readonly kind: BotSet;
  readonly version: number;
  readonly count: number;
  readonly digest: string;
};

export type SetName = Pick<SetVersion, "host" | "kind">;

/** Leads from the set with one digest to the set with the other. */
export type SetDelta = {
  readonly before: string;
  readonly after: string;
  readonly added: readonly SetElement[];
  readonly removed: readonly SetElement[];
};

/** Two growable buffers: all tables of a state lie in one of them, one behind another. */
export type Arenas = readonly [SharedArrayBuffer, SharedArrayBuffer];

/** A set as it was compiled, at the newest version that could be had. Empty sets have no table. */
export type PlacedSet = SetVersion & { readonly at: number | null };
export type PlacedTables = { readonly arena: 0 | 1; readonly sets: readonly PlacedSet[] };

export type TablerInit = { readonly dbPath: string; readonly arenas: Arenas };

export type ToTabler =
  | { readonly kind: "delta"; readonly delta: SetDelta }
  | {
      readonly kind: "build";
      readonly id: number;
      readonly sets: readonly SetVersion[];
      /** The other one is nobody's and is written. */
      readonly inForce: 0 | 1;
    };

export type FromTabler =
  | { readonly kind: "built"; readonly id: number; readonly tables: PlacedTables }
  | { readonly kind: "failed"; readonly id: number; readonly reason: string };
