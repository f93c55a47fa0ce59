// At boot the viewsets that were committed before are served again from what is on disk. Missing files are
// fetched again while the rest is served, even of the same viewset.

import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import { retry } from "../../base/wait.ts";
import { AccelError, codeOf, messageOf } from "../../core/faults.ts";
import type { JournalBody } from "../../wire/journal.ts";
import type { Viewsets } from "../viewset/viewsets.ts";
import type { BookDocuments } from "./release-books.ts";
import type { ReleaseWatch } from "./release-watch.ts";
import { documentOf, type Serving } from "./serving.ts";

export type RestorePorts = {
  readonly serving: Serving;
  readonly documents: BookDocuments;
  readonly viewsets: Pick<Viewsets, "prepare" | "restore">;
  readonly watch: Pick<ReleaseWatch, "judged">;
  readonly health: Health;
  readonly log: Log;
  readonly random: () => number;
  readonly stop: AbortSignal;
};

const prefix = "viewset:";

/** Publishes the first state. Resolves with the domains whose committed viewset is not whole on this disk. */
export async function restoreState({
  serving,
  documents,
  viewsets,
  watch,
}: RestorePorts): Promise<readonly string[]> {
  const torn: string[] = [];
  for (const key of documents.keys(prefix)) {
    const domain = key.slice(prefix.length);
    const body = documentOf(documents, `${prefix}${domain}`);
    const names = serving.names(domain);
    if (body === undefined || names === undefined) continue;
    const restored = await viewsets.restore(body.manifest, names);
    if (restored?.isWhole !== true) torn.push(body.domain);
    if (restored === undefined) continue;
    serving.restore(body.domain, restored.ready);
    watch.judged(body.domain, restored.ready);
  }
  await serving.restoreSets();
  await serving.publish();
  return torn;
}

/**
 * Fetches what is missing of a committed viewset until it is whole, another one took its place, or stop
 * aborts. Never rejects.
 */
export async function healViewset(
  domain: string,
  { serving, documents, viewsets, watch, health, log, random, stop }: RestorePorts,
): Promise<void> {
  const wanted = (): JournalBody<"viewset.activated"> | undefined =>
    documentOf(documents, `${prefix}${domain}`);
  const manifestServed = (): string | null | undefined =>
    serving.state.domains.find(({ name }) => name === domain)?.manifest;
  const before = wanted();
  const heal = async (): Promise<void> => {
    const names = serving.names(domain);
    if (before === undefined || names === undefined || wanted()?.manifest !== before.manifest)
      return;
    using ready = await viewsets.prepare(before.manifest, names, stop, "as taken");
    // A viewset that lacked only some files is served already.
    if (manifestServed() === before.manifest) return;
    await serving.publish({ viewset: { domain, ready } }, () => {
      if (wanted()?.manifest !== before.manifest)
        throw new AccelError("CONFLICT", "another viewset took its place meanwhile");
    });
    watch.judged(domain, ready);
  };
  await retry(heal, {
    stop,
    random,
    onFailure: (error, attempt) => {
      if (attempt === 0)
        log.warn(
          { domain, code: codeOf(error), error: messageOf(error) },
          "a committed viewset is not complete on this disk; what is missing is fetched again",
        );
      return codeOf(error) !== "VIEWSET_INVALID";
    },
  }).then(
    () => health.settle("viewset_damaged", domain),
    (error: unknown) => {
      if (!stop.aborted)
        log.error(
          { domain, code: codeOf(error), error: messageOf(error) },
          "a committed viewset cannot be restored",
        );
    },
  );
}
