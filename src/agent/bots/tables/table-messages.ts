// The messages between main and the table thread. Both are of one build, so nothing is validated.

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

/** A change that turns the set with digest `before` into the one with digest `after`. */
export type SetDelta = {
  readonly before: string;
  readonly after: string;
  readonly added: readonly SetElement[];
  readonly removed: readonly SetElement[];
};

/** Two growable buffers; all tables of a state lie in one of them, one after another. */
export type Arenas = readonly [SharedArrayBuffer, SharedArrayBuffer];

/**
 * A set as it was compiled, at the newest version that was there. `at` is null for empty sets, which have no
 * table.
 */
export type PlacedSet = SetVersion & { readonly at: number | null };
export type PlacedTables = { readonly arena: 0 | 1; readonly sets: readonly PlacedSet[] };

export type TablerInit = { readonly dbPath: string; readonly arenas: Arenas };

export type ToTabler =
  | { readonly kind: "delta"; readonly delta: SetDelta }
  | {
      readonly kind: "build";
      readonly id: number;
      readonly sets: readonly SetVersion[];
      /** The arena in force. Nobody reads the other one, which is written. */
      readonly inForce: 0 | 1;
      /** All of agent.db (imageOf), where this thread cannot open it. */
      readonly image?: Uint8Array | undefined;
    };

export type FromTabler =
  | { readonly kind: "built"; readonly id: number; readonly tables: PlacedTables }
  | { readonly kind: "failed"; readonly id: number; readonly reason: string };
