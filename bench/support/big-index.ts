// An index of a million entries, written through the index's own code in large batches, while no agent runs.

import { join } from "node:path";
import { IndexKeeper } from "../../src/agent/cache/index/index-keeper.ts";
import type { IndexMemory } from "../../src/agent/cache/index/opening.ts";
import { SharedHeader } from "../../src/agent/cache/index/shared-header.ts";
import type { NewEntry } from "../../src/agent/cache/entry.ts";
import type { SitePaths } from "./site-paths.ts";

const batch = 5_000;
const freshForS = 86_400;
/** Bodies are 200 to 1,000 bytes: markup fragments, icons, answers of an API. */
const bodyBytes = (no: number): number => 200 + ((no * 37) % 800);
const page = Buffer.alloc(1_000, "<p>A page that was cached and is going to be cleared.</p>\n");

/** Seconds it took. `tagsOf`: the tags of an entry, as exact words joined by blanks. */
export async function fillIndex(
  stateDir: string,
  memory: IndexMemory,
  paths: SitePaths,
  count: number,
  tagsOf: (no: number) => string = () => "",
): Promise<number> {
  const began = performance.now();
  const keeper = new IndexKeeper({
    directory: join(stateDir, "cache"),
    header: new SharedHeader(SharedHeader.allocate()),
    diskMax: 2 ** 40,
    clock: {
      nowS: () => Math.floor(Date.now() / 1_000),
      elapsedMs: () => performance.now(),
      rest: () => undefined,
    },
    facts: memory.read(),
    events: {
      opened: (_, opening) => memory.note({ opening }),
      dropped: (reason) => {
        throw new Error(`the index was dropped: ${reason}`);
      },
      failed: (reason) => {
        throw new Error(`the index cannot be opened: ${reason}`);
      },
    },
  });
  await keeper.open();
  const { index } = keeper;
  if (index === undefined) throw new Error("the index did not open");
  const sourceNo = index.clears.newest;
  for (let no = 0; no < count; no += batch) {
    const writes = Array.from({ length: Math.min(batch, count - no) }, (_, i) => ({
      kind: "commit" as const,
      candidate: candidate(paths, no + i, sourceNo, tagsOf(no + i)),
    }));
    const lost = index.write(writes).find((outcome) => outcome?.kind !== "stored");
    if (lost !== undefined) throw new Error(`not stored: ${JSON.stringify(lost)}`);
  }
  await keeper.close(() => Promise.resolve(true));
  return (performance.now() - began) / 1_000;
}

function candidate(paths: SitePaths, no: number, sourceNo: number, tags: string): NewEntry {
  const { domain, kind, path, query, mime } = paths.entry(no);
  const size = bodyBytes(no);
  return {
    key: { domain, host: domain, kind, path, query },
    meta: {
      status: 200,
      headers: [
        ["content-type", mime],
        ["cache-control", `public, max-age=${freshForS}`],
        ["etag", `"${no.toString(16)}"`],
        ["last-modified", "Mon, 03 Nov 2025 08:00:00 GMT"],
      ],
      mime,
      ...(tags !== "" && { tags }),
      vary: null,
      storedAtMs: Date.now(),
      initialAgeS: 0,
      freshForS,
      sourceNo,
      digest: kind === "static" ? no.toString(16).padStart(64, "0") : null,
    },
    body: kind === "static" ? null : { kind: "inline", bytes: page.subarray(0, size) },
    size,
    invalidationMark: null,
  };
}
