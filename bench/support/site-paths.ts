// Entries of a large cache, made from real ones: directories and file names of ../shared/data/paths recombined, always the same for the same number.
//
// Of 100 entries 90 are of the first domain, 9 of the second, 1 of the third. Every second entry of the first lies below /shop/. One in five is a static
// file, one in four of the others has a query.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { IndexedEntry } from "../../src/core/patterns/index-schema.ts";

export const siteDomains = ["www.example.com", "middle.example.net", "small.example.org"] as const;
export const shopPath = "/shop/";

export type SiteEntry = IndexedEntry & { readonly domain: string };

const directory = join(import.meta.dirname, "../../../shared/data/paths");
const lists = [
  "debian.libgtk-4-doc.size-path",
  "debian.openjdk-17-doc.size-path",
  "debian.postgresql-doc-15.size-path",
  "debian.python3.11-doc.size-path",
  "semicomplete.urls",
];
/** What a site is asked for, roughly: extension, media type, entries of a hundred. */
const types = [
  ["/", "text/html", 20],
  [".html", "text/html", 25],
  [".webp", "image/webp", 15],
  [".png", "image/png", 10],
  [".jpg", "image/jpeg", 5],
  [".js", "text/javascript", 8],
  [".css", "text/css", 4],
  [".svg", "image/svg+xml", 3],
  [".json", "application/json", 10],
] as const;
const typeOf = types.flatMap(([extension, mime, share]) =>
  Array.from({ length: share }, () => ({ extension, mime })),
);
const queries = [
  (n: number) => `page=${n % 50}`,
  (n: number) => `sort=price&page=${n % 20}`,
  () => "utm_source=feedburner&utm_medium=feed&utm_campaign=Feed:+semicomplete/main",
  () => "flav=rss20",
  (n: number) => `w=${(n % 8) * 160}&q=80&fm=webp`,
];

export class SitePaths {
  readonly #directories: readonly string[];
  readonly #names: readonly string[];

  constructor() {
    const directories = new Set<string>();
    const names = new Set<string>();
    for (const path of realPaths()) {
      const at = path.lastIndexOf("/") + 1;
      directories.add(path.slice(0, at));
      const name = path.slice(at).replace(/\..*$/, "");
      if (name !== "") names.add(name);
    }
    this.#directories = [...directories].sort();
    this.#names = [...names].sort();
  }

  /** `no` counts from 0; each number has a URL of its own. */
  entry(no: number): SiteEntry {
    const share = no % 100;
    const chance = mixed(no);
    const domain = siteDomains[share < 90 ? 0 : share < 99 ? 1 : 2];
    const { extension, mime } = typeOf[(chance >>> 3) % 100] ?? typeOf[0] ?? never();
    const base = this.#directories[(chance >>> 10) % this.#directories.length] ?? "/";
    const below = share < 90 && share % 2 === 0 ? `${shopPath}${base.slice(1)}` : base;
    const name = `${this.#names[mixed(chance) % this.#names.length] ?? "page"}-${no.toString(36)}`;
    const path = `${below}${name}${extension}`;
    if (chance % 5 === 0) return { domain, kind: "static", path: path.slice(1), query: "", mime };
    const query = chance % 4 === 0 ? (queries[no % queries.length]?.(chance >>> 8) ?? "") : "";
    return { domain, kind: "generated", path, query, mime };
  }
}

function* realPaths(): Iterable<string> {
  for (const list of lists) {
    const text = gunzipSync(readFileSync(join(directory, `${list}.tsv.gz`))).toString();
    for (const line of text.split("\n")) {
      const path = line.slice(line.lastIndexOf("\t") + 1).replace(/\?.*$/s, "");
      if (path.startsWith("/usr/share/doc/")) yield path.slice("/usr/share/doc".length);
      else if (path.startsWith("/")) yield path;
    }
  }
}

/** Well spread numbers, the same ones each time. */
function mixed(no: number): number {
  let mix = (no + 0x9e_37_79_b9) >>> 0;
  mix = Math.imul(mix ^ (mix >>> 16), 0x85_eb_ca_6b);
  mix = Math.imul(mix ^ (mix >>> 13), 0xc2_b2_ae_35);
  return (mix ^ (mix >>> 16)) >>> 0;
}

function never(): never {
  throw new TypeError("the list of types is empty");
}
