// How far the imports are, as their agents told last. It is lost with this process, unlike their outcome. An import that begins anew after a break, at its agent or on the way
// here, catches up with what was told before: for a customer it never goes back.

import type { ProgressMessage } from "./channel.ts";

export type ImportProgressTold = Omit<ProgressMessage, "type" | "import_id">;

const progressesMax = 1_000;

export class ImportProgresses {
  readonly #told = new Map<string, ImportProgressTold>();

  of(importId: string): ImportProgressTold | undefined {
    return this.#told.get(importId);
  }

  told({ type: _type, import_id: importId, ...progress }: ProgressMessage): void {
    const before = this.#told.get(importId);
    this.#told.delete(importId);
    this.#told.set(importId, before === undefined ? progress : further(before, progress));
    const oldest = this.#told.size > progressesMax ? this.#told.keys().next().value : undefined;
    if (oldest !== undefined) this.#told.delete(oldest);
  }

  over(importIds: readonly string[]): void {
    for (const id of importIds) this.#told.delete(id);
  }
}

const phases: readonly ImportProgressTold["phase"][] = ["reading", "uploading"];

/** Pure. Returns the one of two that is further, with the most of what was done in it. */
export function further(before: ImportProgressTold, now: ImportProgressTold): ImportProgressTold {
  const [was, is] = [before, now].map(({ phase }) => phases.indexOf(phase)) as [number, number];
  if (is !== was) return is > was ? now : before;
  return {
    ...now,
    files_done: Math.min(Math.max(before.files_done, now.files_done), now.files_total),
    bytes_done: Math.min(Math.max(before.bytes_done, now.bytes_done), now.bytes_total),
  };
}
