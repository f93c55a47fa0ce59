// Central's judgement of manifests and devlove documents. Short ones are judged at once; long ones are judged
// in a thread for their kind, so that no document waits for a manifest of a million files.

import { AccelError } from "../../core/faults.ts";
import type { Log } from "../../base/log.ts";
import type { Sha256 } from "../../core/ids.ts";
import { compareManifests, type ManifestsCompared } from "../../wire/manifest-changes.ts";
import { judgeManifest, type ManifestVerdict } from "../../wire/manifest-judgement.ts";
import { validateDevlove, type DevloveValidation } from "../../wire/devlove-validate.ts";
import type { DevloveQuestion } from "./judge-messages.ts";
import { JudgeWorker, type Unjudged } from "./judge-worker.ts";

export type JudgeOptions = {
  readonly entry: URL;
  readonly log: Log;
  readonly stop: AbortSignal;
  /** A deadline that tests set. */
  readonly deadlineMs?: number;
};

/** Room for a manifest of 256 MiB as text, as objects, and what is made of them. */
const manifestHeapMiB = 2_048;
/** A million files take nine seconds; a host may be much busier than that, and this work has low priority. */
const manifestDeadlineMs = 300_000;
const devloveHeapMiB = 512;
/** The worst known document takes three seconds. */
const devloveDeadlineMs = 120_000;
/** The time after which an idle thread ends, and its memory with it. */
const idleMs = 60_000;
const waitingMax = 64;
/** The largest manifest judged at once: some 1,500 files, in 15 ms. */
const shortManifestBytes = 2 ** 18;
/**
 * The largest document judged at once, some 5 ms: its characters, and 32 for each name that a mistyped one
 * may have been meant for.
 */
const shortMost = 16_384;
const charsPerName = 32;

/**
 * Judges manifests and devlove documents. Throws AccelErrors that may be retried: central is stopping, or too
 * much waits. What can never be judged is refused with the reason.
 */
export class Judge implements AsyncDisposable {
  readonly #manifests: JudgeWorker;
  readonly #devloves: JudgeWorker;

  constructor({ entry, log, stop, deadlineMs }: JudgeOptions) {
    const shared = { entry, log, stop, idleMs, waitingMax };
    this.#manifests = new JudgeWorker({
      ...shared,
      what: "the manifest",
      heapMiB: manifestHeapMiB,
      deadlineMs: deadlineMs ?? manifestDeadlineMs,
    });
    this.#devloves = new JudgeWorker({
      ...shared,
      what: "the devlove file",
      heapMiB: devloveHeapMiB,
      deadlineMs: deadlineMs ?? devloveDeadlineMs,
    });
  }

  /** `read` returns the bytes in a buffer that can be handed over; it is called again for a second try. */
  async manifest(read: () => Promise<Uint8Array>): Promise<ManifestVerdict> {
    let first: Uint8Array | undefined = await read();
    if (first.length <= shortManifestBytes) return judgeManifest(first);
    const asked = await this.#manifests.judge(async () => {
      const bytes = first ?? (await read());
      first = undefined;
      return { op: "manifest", bytes };
    });
    return asked.kind === "judged" ? asked.verdict : { ok: false, reason: lasting(asked) };
  }

  /** Returns the first path of a manifest with this content and size. */
  async path(
    read: () => Promise<Uint8Array>,
    sha256: Sha256,
    size: number,
  ): Promise<string | undefined> {
    const asked = await this.#manifests.judge(async () => ({
      op: "path",
      bytes: await read(),
      sha256,
      size,
    }));
    if (asked.kind === "judged") return asked.verdict;
    lasting(asked);
    return undefined;
  }

  /** Compares two manifests; `after` is in a buffer that can be handed over. `read` is called again for a second try. */
  async changes(
    read: () => Promise<{
      readonly before: Uint8Array | undefined;
      readonly after: Uint8Array;
    }>,
  ): Promise<ManifestsCompared> {
    let first: Awaited<ReturnType<typeof read>> | undefined = await read();
    if (first.after.length + (first.before?.length ?? 0) <= shortManifestBytes)
      return compareManifests(first.before, first.after);
    const asked = await this.#manifests.judge(async () => {
      const { before, after: bytes } = first ?? (await read());
      first = undefined;
      return { op: "changes", bytes, before };
    });
    return asked.kind === "judged" ? asked.verdict : { ok: false, reason: lasting(asked) };
  }

  async devlove(question: DevloveQuestion): Promise<DevloveValidation> {
    const { schema, content, context } = question;
    const cost = content.length + charsPerName * context.subDomains.length;
    if (cost <= shortMost) return validateDevlove(schema, content, context);
    const asked = await this.#devloves.judge(async () => ({ op: "devlove", ...question }));
    if (asked.kind === "judged") return asked.verdict;
    return { ok: false, errors: [{ path: "", message: lasting(asked) }] };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([
      this.#manifests[Symbol.asyncDispose](),
      this.#devloves[Symbol.asyncDispose](),
    ]);
  }
}

function lasting({ reason, isLasting }: Unjudged): string {
  if (isLasting) return reason;
  throw new AccelError("JUDGING_BUSY", reason);
}
