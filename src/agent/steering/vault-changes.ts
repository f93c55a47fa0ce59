// Takes keys and certificates of the deployment site into the vault and into the served state.
//
// Certificates are committed with the state that holds them: their file is durable before, and agent.db names
// it in the transaction of the flip. Keys and certificates that the host's secret16 does not open are kept
// and receipted as failed; a start with a secret16 that opens them takes them into use and corrects the
// receipts.

import type { Log } from "../../base/log.ts";
import { Mutex } from "../../base/mutex.ts";
import { retry } from "../../base/wait.ts";
import { AccelError, codeOf, messageOf } from "../../core/faults.ts";
import type {
  FoundCertificates,
  LockedCertificates,
  ReadyCertificates,
} from "../../core/serving/found-certificates.ts";
import type { EntryPlace } from "../../core/serving/release-list.ts";
import type { JournalBody } from "../../wire/journal.ts";
import type { Snapshot } from "../../wire/snapshot.ts";
import type { Correction, Documents } from "../link/agent-db.ts";
import { refused, type EntryOutcome } from "../link/entry-outcome.ts";
import type { Vault } from "../vault/vault.ts";
import { documentOf, type Serving } from "./serving.ts";

export type VaultChangesDeps = {
  readonly vault: Pick<
    Vault,
    | "lacksKeys"
    | "lockedKeys"
    | "isSealedUnderAnother"
    | "unlock"
    | "takeKeys"
    | "prepare"
    | "restore"
    | "use"
    | "forget"
  >;
  readonly serving: Pick<Serving, "publish" | "restoreCertificates">;
  readonly documents: Documents;
  readonly getSnapshot: (signal: AbortSignal) => Promise<Snapshot>;
  /** Signs in anew, which brings the new secret16 after a rotation. */
  readonly signIn: () => Promise<void>;
  readonly log: Log;
  readonly random: () => number;
  readonly stop: AbortSignal;
};

const lockedOutcome = (reason: string): EntryOutcome => ({
  phase: "failed",
  detail: { reason, code: "VAULT_LOCKED" },
});

export class VaultChanges {
  readonly #deps: VaultChangesDeps;
  /**
   * Serialises changes: entries come one after another, but healing and snapshots do not wait for their lane.
   */
  readonly #one = new Mutex();
  #isTorn = false;
  #inForce: ReadyCertificates | undefined;
  #locked: LockedCertificates | undefined;

  constructor(deps: VaultChangesDeps) {
    this.#deps = deps;
  }

  /**
   * Restores, before the first publish, what was in force before; if this start's secret16 opens what was
   * locked, it takes that instead.
   */
  async restore(): Promise<void> {
    const { documents, vault } = this.#deps;
    // The keys were lost, or sent to a release that did not know them. A host that never took a snapshot gets
    // them with its first one.
    this.#isTorn = vault.lacksKeys && documentOf(documents, "domains") !== undefined;
    await this.#restoreKeys();
    if (await this.#restoreLocked()) return;
    const stored = documentOf(documents, "certificates");
    if (stored === undefined) return;
    const found = await vault.restore(stored);
    if (found.kind === "ready") await this.#restored(found);
    else this.#isTorn = true;
  }

  async #restoreKeys(): Promise<void> {
    const { documents, vault } = this.#deps;
    const waiting = documentOf(documents, "keys_locked");
    if (waiting === undefined || vault.lockedKeys().length > 0) return;
    documents.put({ keys_locked: null }, applied(waiting.entry, {}));
  }

  async #restoreLocked(): Promise<boolean> {
    const { documents, vault } = this.#deps;
    const waiting = documentOf(documents, "certificates_locked");
    if (waiting === undefined) return false;
    const { entry, ...stored } = waiting;
    const found = await vault.restore(stored);
    if (found.kind === "locked") this.#locked = found;
    if (found.kind !== "ready") return false;
    const done = applied(entry, { certificates: stored.count });
    documents.put({ certificates: stored, certificates_locked: null }, done);
    await this.#restored(found);
    return true;
  }

  /** Takes into use what waited for the secret16 that this host has now, and corrects the receipts. */
  async unlock(): Promise<void> {
    const { documents, vault, serving } = this.#deps;
    await this.#one.run(async () => {
      await vault.unlock();
      await this.#restoreKeys();
      const waiting = documentOf(documents, "certificates_locked");
      if (waiting === undefined) return;
      const { entry, ...stored } = waiting;
      const found = await vault.restore(stored);
      if (found.kind !== "ready") return;
      const done = applied(entry, { certificates: stored.count });
      await serving.publish({ certificates: found.table ?? null }, () =>
        documents.put({ certificates: stored, certificates_locked: null }, done),
      );
      this.#locked = undefined;
      await this.#use(found);
    });
  }

  async #restored(ready: ReadyCertificates): Promise<void> {
    this.#deps.serving.restoreCertificates(ready.table);
    await this.#use(ready);
  }

  /** Tries until what was in force before is here again, if a damaged disk lost it. Never rejects. */
  async heal(): Promise<void> {
    if (!this.#isTorn) return;
    const { getSnapshot, log, random, stop } = this.#deps;
    const heal = async (): Promise<void> =>
      this.#one.run(async () => {
        // The snapshot is asked for inside the mutex, so that changes applied afterwards are newer than it.
        const { keys, certificates } = await getSnapshot(stop);
        await this.#takeKeys(keys, null);
        await this.#takeCertificates(certificates, null, stop);
      });
    const onFailure = (error: unknown, attempt: number): boolean => {
      if (attempt === 0)
        log.warn(
          { code: codeOf(error), error: messageOf(error) },
          "keys or certificates are missing on this disk; they are fetched again",
        );
      return codeOf(error) !== "SITE_DELETED";
    };
    await retry(heal, { stop, random, onFailure }).catch((error: unknown) => {
      if (!stop.aborted)
        log.error({ code: codeOf(error), error: messageOf(error) }, "the vault cannot be restored");
    });
  }

  async changeKeys(body: JournalBody<"key.changed">, entry: EntryPlace): Promise<EntryOutcome> {
    return this.#one.run(async () => this.#takeKeys(body, entry));
  }

  async changeCertificates(
    body: JournalBody<"certificate.changed">,
    entry: EntryPlace,
    signal: AbortSignal,
  ): Promise<EntryOutcome> {
    return this.#one.run(async () => this.#takeCertificates(body, entry, signal));
  }

  /** Forgets keys and certificates after the site was deleted: neither stays on this host. */
  async forget(): Promise<void> {
    const { serving, documents, vault } = this.#deps;
    await this.#one.run(async () => {
      await serving.publish({ certificates: null }, () =>
        documents.put({ certificates: null, certificates_locked: null, keys_locked: null }),
      );
      this.#inForce = undefined;
      this.#locked = undefined;
      await vault.forget();
    });
  }

  async #takeKeys(body: JournalBody<"key.changed">, entry: EntryPlace): Promise<EntryOutcome> {
    const { documents, vault } = this.#deps;
    if (vault.isSealedUnderAnother(body)) await this.#signIn();
    const locked = await vault.takeKeys(body);
    documents.put({ keys_locked: locked.length === 0 ? null : { entry } });
    const newest = body.keys.at(-1)?.name ?? null;
    if (locked.length === 0)
      return { phase: "applied", detail: { keys: body.keys.length, newest } };
    return lockedOutcome(
      `${locked.join(", ")} cannot be opened: sealed under another secret16 than this host's`,
    );
  }

  /** Lets the host learn a rotated secret16. Without it the keys are locked until it comes with a later token. */
  async #signIn(): Promise<void> {
    const { signIn, log } = this.#deps;
    await signIn().catch((error: unknown) => {
      log.warn(
        { code: codeOf(error), error: messageOf(error) },
        "secret16 was rotated, and central cannot be asked for the new one",
      );
    });
  }

  async #takeCertificates(
    body: JournalBody<"certificate.changed">,
    entry: EntryPlace,
    signal: AbortSignal,
  ): Promise<EntryOutcome> {
    const found = await this.#prepare(body, signal);
    if (typeof found === "string") return { phase: "failed", detail: { reason: found } };
    switch (found.kind) {
      case "ready":
        return this.#install(found);
      case "locked":
        return this.#keepLocked(found, entry);
      case "invalid":
        return refused(found.reason, "CERTIFICATES_INVALID");
      case "torn":
        throw new AccelError("INTERNAL", "certificates that have just arrived are damaged");
      default:
        return found satisfies never;
    }
  }

  async #prepare(
    body: JournalBody<"certificate.changed">,
    signal: AbortSignal,
  ): Promise<FoundCertificates | string> {
    try {
      return await this.#deps.vault.prepare(body, signal);
    } catch (error) {
      if (codeOf(error) !== "NOT_FOUND") throw error;
      return "central has other certificates by now: a later entry brings them";
    }
  }

  async #install(ready: ReadyCertificates): Promise<EntryOutcome> {
    const { serving, documents } = this.#deps;
    await serving.publish({ certificates: ready.table ?? null }, () =>
      documents.put({ certificates: ready.stored, certificates_locked: null }),
    );
    this.#locked = undefined;
    await this.#use(ready);
    return { phase: "applied", detail: { certificates: ready.stored?.count ?? 0 } };
  }

  async #keepLocked(locked: LockedCertificates, entry: EntryPlace): Promise<EntryOutcome> {
    this.#deps.documents.put({ certificates_locked: { ...locked.stored, entry } });
    this.#locked = locked;
    await this.#use(this.#inForce);
    return lockedOutcome(locked.reason);
  }

  async #use(ready: ReadyCertificates | undefined): Promise<void> {
    this.#inForce = ready;
    await this.#deps.vault.use(ready, this.#locked);
  }
}

/**
 * Takes the keys and certificates of a snapshot and returns what came of the entries that it stands for.
 * Throws what may be retried.
 */
export async function takeVault(
  changes: Pick<VaultChanges, "changeKeys" | "changeCertificates">,
  snapshot: Snapshot,
  signal: AbortSignal,
): Promise<readonly (Pick<EntryOutcome, "phase" | "detail"> & { readonly seq: number })[]> {
  const { epoch, keys, certificates, vault_entries: seqs } = snapshot;
  const place = (seq: number | null): EntryPlace => (seq === null ? null : { epoch, seq });
  const outcomes = [
    [seqs.keys, await changes.changeKeys(keys, place(seqs.keys))],
    [
      seqs.certificates,
      await changes.changeCertificates(certificates, place(seqs.certificates), signal),
    ],
  ] as const;
  return outcomes.flatMap(([seq, { phase, detail }]) =>
    seq === null ? [] : [{ seq, phase, detail }],
  );
}

function applied(entry: EntryPlace, detail: Correction["detail"]): readonly Correction[] {
  return entry === null ? [] : [{ ...entry, phase: "applied", detail }];
}
