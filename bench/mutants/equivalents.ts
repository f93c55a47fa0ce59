// Mutants that no test can tell from the original, each with the reason. A reason is about what the program does, never that a test would be hard.

import type { MutantName } from "./mutant.ts";

export type Equivalent = MutantName & { readonly reason: string };

export const equivalents: readonly Equivalent[] = [];
