// Tells how far an import is: at most four messages a second, beside the last one, which is always sent.
// Counts never go back within a phase, and the bytes done never exceed the total.

import type { RunningImport } from "../../wire/channel.ts";

export type Amount = { readonly files: number; readonly bytes: number };

const intervalMs = 250;

export function amountOf(files: readonly { readonly size: number }[]): Amount {
  return { files: files.length, bytes: files.reduce((bytes, { size }) => bytes + size, 0) };
}

export class ProgressMeter {
  readonly #importId: string;
  readonly #send: (progress: RunningImport) => void;
  readonly #now: () => number;
  #phase: RunningImport["phase"] = "reading";
  #done = { files: 0, bytes: 0 };
  #total: Amount = { files: 0, bytes: 0 };
  #sentAt = -Infinity;

  constructor(importId: string, send: (progress: RunningImport) => void, now: () => number) {
    this.#importId = importId;
    this.#send = send;
    this.#now = now;
  }

  begin(phase: RunningImport["phase"], total: Amount, done: Amount): void {
    this.#phase = phase;
    this.#total = total;
    this.#done = { ...done };
    this.#report();
  }

  add({ files, bytes }: Amount): void {
    this.#done.files += files;
    this.#done.bytes += bytes;
    this.#report();
  }

  /** Sends the last message. */
  end(): void {
    this.#emit();
  }

  #report(): void {
    if (this.#now() - this.#sentAt >= intervalMs) this.#emit();
  }

  #emit(): void {
    this.#sentAt = this.#now();
    this.#send({
      import_id: this.#importId,
      phase: this.#phase,
      files_done: this.#done.files,
      files_total: this.#total.files,
      bytes_done: Math.min(this.#done.bytes, this.#total.bytes),
      bytes_total: this.#total.bytes,
    });
  }
}
