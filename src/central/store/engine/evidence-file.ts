// `store.evidence` in the state directory: what this central has acknowledged, for the next one that starts there (store-evidence.ts).
//
// It is written again soon after something was acknowledged, beside the answer and not before it: a central that is cut off may have acknowledged what it does not say,
// in the quarter of a second before. The last one, written when central ends, says that there is nothing of the kind.

import { readFile } from "node:fs/promises";
import { writeDurable } from "../../../base/durable-file.ts";
import { sleep } from "../../../base/wait.ts";
import { AccelError, messageOf, systemCode } from "../../../core/faults.ts";
import { parseEvidence, type StoreEvidence } from "./store-evidence.ts";

export const evidenceName = "store.evidence";
/** Four syncs a second at most, beside the request logs on the same disk. */
const paceMs = 250;
const afterFailureMs = 10_000;

/** Undefined where no central on PostgreSQL has run yet. Throws FILE_UNUSABLE for a file that cannot be read. */
export async function readEvidence(path: string): Promise<StoreEvidence | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw new AccelError("FILE_UNUSABLE", `${path} cannot be read: ${messageOf(error)}`);
  }
  const evidence = parseEvidence(text);
  if (evidence === undefined)
    throw new AccelError("FILE_UNUSABLE", `${path} is not as accel-central writes it`, {
      hint: "It says what central had acknowledged. If it cannot be brought back, take it away: central then cannot find out whether its store lost anything before this start.",
    });
  return evidence;
}

export async function writeEvidence(path: string, evidence: StoreEvidence): Promise<void> {
  await writeDurable(path, `${JSON.stringify(evidence)}\n`);
}

export type EvidenceFileOptions = {
  readonly path: string;
  /** Returns what is to be written now. */
  readonly evidence: (isFinal: boolean) => StoreEvidence;
  /** Called with what was written, when it is durable. Must not reject. */
  readonly onSaved: (evidence: StoreEvidence) => Promise<void>;
  /** Called for the first failure of a row; must not throw. */
  readonly onFailure: (error: unknown) => void;
};

export class EvidenceFile implements AsyncDisposable {
  readonly #options: EvidenceFileOptions;
  readonly #ending = new AbortController();
  #isDue = false;
  #isSaving = false;
  #hasFailed = false;
  #saving: Promise<void> = Promise.resolve();

  constructor(options: EvidenceFileOptions) {
    this.#options = options;
  }

  /** It is written soon. */
  changed(): void {
    this.#isDue = true;
    if (this.#isSaving || this.#ending.signal.aborted) return;
    this.#isSaving = true;
    this.#saving = this.#save();
  }

  /** Writes it for the last time. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#saving;
    await this.#write(true);
  }

  async #save(): Promise<void> {
    const { signal } = this.#ending;
    while (this.#isDue && !signal.aborted) {
      this.#isDue = false;
      const isWritten = await this.#write(false);
      if (!isWritten) this.#isDue = true;
      await sleep(isWritten ? paceMs : afterFailureMs, signal);
    }
    this.#isSaving = false;
  }

  async #write(isFinal: boolean): Promise<boolean> {
    const { path, evidence: current, onSaved, onFailure } = this.#options;
    const evidence = current(isFinal);
    try {
      await writeEvidence(path, evidence);
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) onFailure(error);
      this.#hasFailed = true;
      return false;
    }
    if (!isFinal) await onSaved(evidence);
    return true;
  }
}
