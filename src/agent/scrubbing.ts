// Composes the scrub: what it reads, whom it asks, and what happens to damaged files.

import { join } from "node:path";
import { entryUrl } from "../base/entry.ts";
import { messageOf } from "../core/faults.ts";
import type { Sha256 } from "../core/ids.ts";
import type { Ground } from "./ground.ts";
import type { Releases } from "./releases.ts";
import { Scrub, type Repaired } from "./scrub/scrub.ts";
import { walk } from "./scrub/walker.ts";
import type { Mended } from "./steering/repairs.ts";
import type { Serving } from "./steering/serving.ts";
import type { Viewsets } from "./viewset/viewsets.ts";

type Parts = {
  readonly viewsets: Viewsets;
  readonly serving: Serving;
  readonly releases: Releases;
};

export function openScrub(stack: AsyncDisposableStack, ground: Ground, parts: Parts): Scrub {
  const { options, common, db, index } = ground;
  const { settings, now } = options;
  const walker = {
    entry: entryUrl(import.meta.url, "./scrubber"),
    blobsDir: parts.viewsets.blobsDir,
    cacheDir: join(settings.state_dir, "cache"),
    bytesPerS: settings["scrub.read_rate"],
  };
  return stack.use(
    new Scrub({
      documents: db,
      walk: async (...asked) => walk(walker, ...asked),
      checkIndex: async () => index.scrub(),
      dropBody: async (id) => index.lost([id]),
      mendBlob: async (...damage) => mendBlob(ground, parts, ...damage),
      schedule: settings["scrub.schedule"],
      now,
      ...common,
    }),
  );
}

/**
 * Mends a damaged blob. For a version in force it is repaired as any other damage there; for a kept version
 * it is fetched again, so that going back needs no network; a blob that no version needs is only removed.
 */
async function mendBlob(
  { options: { stop, log } }: Ground,
  { viewsets, serving, releases }: Parts,
  sha256: Sha256,
  reason: string,
): Promise<Repaired> {
  const holders = await viewsets.holdersOf(sha256);
  if (holders.length === 0) await viewsets.dropDamaged([sha256]);
  const mended = await Promise.all(
    holders.map(async ({ domain, manifest, standing }): Promise<Mended> => {
      if (standing === "needed") return releases.repairs.mend(domain, manifest, [sha256], reason);
      const names = serving.names(domain);
      if (names === undefined) return "given-up";
      try {
        await viewsets.dropDamaged([sha256]);
        using _ = await viewsets.prepare(manifest, names, stop, "as taken");
        return "whole";
      } catch (error) {
        log.warn({ domain, manifest, error: messageOf(error) }, "a kept version is not complete");
        return "given-up";
      }
    }),
  );
  return mended.every((one) => one === "whole") ? "repaired" : "left";
}
