// Central's judgement of manifests and devlove documents: what is short at once, what may be long in a thread of its own kind, so that no document waits for
// a manifest of a million files.

import { AccelError } from "../../core/faults.ts";
import type { Log } from "../../base/log.ts";
import type { Sha256 } from "../../core/ids.ts";
import { judgeManifest, type ManifestVerdict } from "../../wire/manifest-judgement.ts";
import { validateDevlove, type DevloveValidation } from "../../wire/devlove-validate.ts";
import type { DevloveQuestion } from "./judge-messages.ts";
import { JudgeWorker, type Unjudged } from "./judge-worker.ts";

export type JudgeOptions = {
  readonly entry: URL;
  readonly log: Log;
  readonly stop: AbortSignal;
  /** Replaced by tests. */
  readonly deadlineMs?: number;
};

/** A manifest of 256 MiB as text, as objects, and what is made of them. */
const manifestHeapMiB = 2_048;
/** A million files take nine seconds; a host may be much busier than that, and this goes last. */
const manifestDeadlineMs = 300_000;
const devloveHeapMiB = 512;
/** The worst that is known takes three seconds. */
const devloveDeadlineMs = 120_000;
/** A thread's memory goes with it. */
const idleMs = 60_000;
const waitingMax = 64;
/** Some 1,500 files, judged in 15 ms. */
const shortManifestBytes = 2 ** 18;
/** Characters of a document, and 32 for each name that a mistyped one may have been meant for: some 5 ms. */
const shortMost = 16_384;
const charsPerName = 32;

/** Throws AccelErrors that may be tried again: central stops, or too much waits. What can never be judged is refused with the reason. */
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

  /** `read`: its bytes, in a buffer that can be handed over; asked again for a second try. */
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

  /** The first path of a manifest with this content in this size. */
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
