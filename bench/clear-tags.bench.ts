// Clears by what people know over a large index: entries with ten tags each and one with 2,000, against the same index without tags.
// CLEAR_TAGS_ENTRIES sets how many entries there are (1,000,000).

import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqlite } from "../src/base/sqlite.ts";
import { patternsOfPrefix, patternsOfUrl } from "../src/core/patterns/clear-items.ts";
import { exactWord } from "../src/core/patterns/exact-word.ts";
import { urlOf } from "../src/core/patterns/index-schema.ts";
import { tagged } from "../src/core/patterns/pattern-recipes.ts";
import { indexMemory, openAgentDb } from "../src/agent/link/agent-db.ts";
import { until } from "../test/support/until.ts";
import { fillIndex } from "./support/big-index.ts";
import { Figures, percentile } from "./support/figures.ts";
import { clearNow, openClearing } from "./support/scale-clears.ts";
import { siteDomains, SitePaths } from "./support/site-paths.ts";

const entries = Number(process.env["CLEAR_TAGS_ENTRIES"] ?? 1_000_000);
const mebibyte = 2 ** 20;
const clears = 40;
/** Each product is on some hundred pages. */
const products = Math.ceil(entries / 20);
const [domain] = siteDomains;

/** Nine products and a section; one page has 2,000 products. */
function tagsOf(no: number): string {
  const count = no === 7 ? 2_000 : 9;
  const names = Array.from(
    { length: count },
    (_, at) => `product-${(no * 7 + at * 7_919) % products}`,
  );
  return [...names, `section-${no % 50}`].map((name) => exactWord(name)).join(" ");
}

export async function run(say: (line: string) => void): Promise<void> {
  const figures = new Figures(say);
  const paths = new SitePaths();
  figures.head(`${entries.toLocaleString("en")} entries, ten tags each and 2,000 of one`);
  const plain = await filled(
    paths,
    () => "",
    async (stateDir) => measureUpgrade(stateDir, figures),
  );
  figures.add("filled without tags", entries / plain.seconds, "entries/s");
  figures.add("index without tags", plain.bytes / mebibyte, "MiB");
  const all = await filled(paths, tagsOf, async (stateDir) => measure(stateDir, paths, figures));
  figures.add("filled with tags", entries / all.seconds, "entries/s");
  figures.add("index with tags", all.bytes / mebibyte, "MiB");
  say(figures.missed.length === 0 ? "every limit met" : `missed: ${figures.missed.join("; ")}`);
}

async function filled(
  paths: SitePaths,
  tags: (no: number) => string,
  use: (stateDir: string) => Promise<void>,
): Promise<{ readonly seconds: number; readonly bytes: number }> {
  const stateDir = mkdtempSync(join(tmpdir(), "accel-tags-"));
  try {
    mkdirSync(join(stateDir, "cache"), { recursive: true });
    const db = openAgentDb(join(stateDir, "agent.db"));
    const seconds = await fillIndex(stateDir, indexMemory(db), paths, entries, tags);
    db[Symbol.dispose]();
    const { size: bytes } = statSync(join(stateDir, "cache/index.db"));
    await use(stateDir);
    return { seconds, bytes };
  } finally {
    rmSync(stateDir, { recursive: true, force: true });
  }
}

async function measure(stateDir: string, paths: SitePaths, figures: Figures): Promise<void> {
  await using clearing = await openClearing(stateDir);
  const { client } = clearing;
  const timed = async (name: string, patterns: readonly string[], most: number) => {
    const order = { clearId: name, domain, host: null, patterns: [], seq: 0 };
    const { applied, gone } = client.clear({ ...order, groups: [{ host: null, patterns }] });
    const { matched, invisibleMs, widened } = await applied;
    figures.add(
      name,
      invisibleMs,
      "ms",
      { most },
      `${matched} matched${widened ? ", widened" : ""}`,
    );
    await gone;
  };
  const took: number[] = [];
  for (let no = 0; no < clears; no++) {
    const cleared = await clearNow(client, [tagged(`product-${no * 11 + 1}`)]);
    took.push(cleared.invisibleMs);
    await cleared.gone;
  }
  figures.add("a clear by one tag, p50", percentile(took, 0.5), "ms");
  figures.add("a clear by one tag, p99", percentile(took, 0.99), "ms", { most: 500 });
  const urls = Array.from({ length: 1_000 }, (_, at) =>
    patternsOfUrl(urlOf(paths.entry(at * 31 + 3)), ["index.html"]),
  ).flat();
  await timed(`a clear by 1,000 URLs (${urls.length} patterns)`, urls, 1_500);
  const prefixes = Array.from({ length: 1_000 }, (_, at) => patternsOfPrefix(`/p${at}`)).flat();
  await timed("a clear by 1,000 prefixes that match little", prefixes, 1_500);
  const tags = Array.from({ length: 1_000 }, (_, at) => tagged(`product-${at + 500}`));
  await timed("a clear by 1,000 tags", tags, 1_500);
  await timed("a clear by a tag of every fiftieth entry", [tagged("section-3")], 1_500);
}

/** The index gets the shape of the release before, and is opened. */
async function measureUpgrade(stateDir: string, figures: Figures): Promise<void> {
  const db = openSqlite(join(stateDir, "cache/index.db"), { sync: "normal" });
  db.exec(`ALTER TABLE entry DROP COLUMN tags; ALTER TABLE state DROP COLUMN awaited_from;
    ALTER TABLE state DROP COLUMN awaited_to; ALTER TABLE entry DROP COLUMN confirmed_no; ALTER TABLE clear DROP COLUMN soft;
    DROP TABLE softened; PRAGMA user_version = 8`);
  db.close();
  const began = performance.now();
  await using clearing = await openClearing(stateDir);
  const { client } = clearing;
  figures.add("opened after an update", performance.now() - began, "ms");
  const scope = { domain, host: null };
  const isIndexed = async (): Promise<boolean> =>
    client.search({ scope, patterns: ["path:nothing"], limit: 1 }).then(
      () => true,
      () => false,
    );
  await until("all is indexed", isIndexed, 3_600_000);
  const { entries: kept } = await client.stats();
  const seconds = (performance.now() - began) / 1_000;
  figures.add("indexed anew, in the background", seconds, "s", undefined, `${kept} entries`);
}
