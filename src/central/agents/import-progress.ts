// How far the imports are, as their agents told last. It is lost with this process, unlike their outcome.

import type { ProgressMessage } from "./channel.ts";

export type ImportProgressTold = Omit<ProgressMessage, "type" | "import_id">;

const progressesMax = 1_000;

export class ImportProgresses {
  readonly #told = new Map<string, ImportProgressTold>();

  of(importId: string): ImportProgressTold | undefined {
    return this.#told.get(importId);
  }

  told({ type: _type, import_id: importId, ...progress }: ProgressMessage): void {
    this.#told.delete(importId);
    this.#told.set(importId, progress);
    const oldest = this.#told.size > progressesMax ? this.#told.keys().next().value : undefined;
    if (oldest !== undefined) this.#told.delete(oldest);
  }

  over(importIds: readonly string[]): void {
    for (const id of importIds) this.#told.delete(id);
  }
}
