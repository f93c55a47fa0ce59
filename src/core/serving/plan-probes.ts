// Decides what a staged version is asked before it may serve, and what it has to answer. The plan of a
// request tells that from the devlove and the manifest, without the code that finds files. Backends are not
// asked.
//
// Each host is asked for `/` and for files of its views: the first, the last, the largest, and some that the
// manifest's digest picks, so that the same version is always asked the same.

import type { ManifestFile, ManifestTable } from "./manifest-table.ts";
import { isServable } from "../http/request-path.ts";
import { SITE_DEFAULTS, type SiteConfig } from "./effective-devlove.ts";
import {
  nextStep,
  nothingKnown,
  type FileFact,
  type RequestAnswer,
  type RequestFacts,
} from "./request-plan.ts";
import { rootRequest } from "./probe-request.ts";
import type { ServedHost } from "./serving-state.ts";
import { compileSite } from "./site-routes.ts";

export type Probe = {
  readonly host: string;
  /** The path of a file below the site root, decoded; null stands for the site's `/`. */
  readonly path: string | null;
};

/** The answer that a worker found. */
export type ProbeAnswer =
  | { readonly kind: "file"; readonly digest: string; readonly size: number }
  /** No file answers: a redirect, the origin or a 404 would. */
  | { readonly kind: "none" }
  /** A file of the right size is there, but its bytes are wrong or cannot be read. */
  | { readonly kind: "damaged" }
  | { readonly kind: "failed"; readonly reason: string };

export type ProbeExpectation = Probe & {
  /** Null if any answer will do that is no failure. */
  readonly expected: Exclude<ProbeAnswer, { kind: "failed" | "damaged" }> | null;
};

const pathsMax = 20;
/**
 * The probes after which further hosts are asked for `/` only; a domain may have hundreds of hosts with the
 * same views.
 */
const probesMax = 400;
const pickedMax = pathsMax - 3;

export function planProbes(
  hosts: readonly ServedHost[],
  manifest: string | null,
  open: (table: SharedArrayBuffer) => ManifestTable,
): readonly ProbeExpectation[] {
  const probes: ProbeExpectation[] = [];
  for (const { name: host, site, views } of hosts) {
    if (site === null) continue;
    if (views.kind !== "manifest") {
      probes.push({ host, path: null, expected: views.kind === "none" ? { kind: "none" } : null });
      continue;
    }
    const table = open(views.table);
    probes.push(...expectedRoot(host, site, table, views.prefix));
    if (probes.length < probesMax)
      for (const file of picked(table, views.prefix, manifest ?? ""))
        probes.push(expectedFile(host, file, views.prefix));
  }
  return probes;
}

/**
 * Returns the expected answer to `/`, and where that is not the index file, to the index file's own name: it
 * must be readable all the same.
 */
function expectedRoot(
  host: string,
  site: SiteConfig,
  table: ManifestTable,
  prefix: string,
): readonly ProbeExpectation[] {
  const find = (path: string): ManifestFile | undefined => table.find(prefix + path);
  const index = site.index.filter(isServable).map(find).find(Boolean);
  const page = site.single_page === null ? undefined : find(site.single_page);
  const kind = answerToRoot(host, site, index !== undefined, page !== undefined);
  const file = kind === "file" ? index : kind === "single-page" ? page : undefined;
  const root: ProbeExpectation =
    file === undefined
      ? { host, path: null, expected: { kind: "none" } }
      : { ...expectedFile(host, file, prefix), path: null };
  return index === undefined || file === index ? [root] : [root, expectedFile(host, index, prefix)];
}

/** Returns the answer to `/` by the plan of a request, or undefined where an origin would be asked. */
function answerToRoot(
  name: string,
  site: SiteConfig,
  hasIndex: boolean,
  hasSinglePage: boolean,
): RequestAnswer["kind"] | undefined {
  // Cache rules are left out: they are for what an origin makes.
  const routes = compileSite({ ...site, cache: SITE_DEFAULTS.cache });
  const fact = (isThere: boolean): FileFact => ({ kind: isThere ? "file" : "none" });
  let facts: RequestFacts = {
    ...nothingKnown,
    ...rootRequest(name),
    startedWallMs: 0,
    host: { kind: "served", host: { name }, compiled: { site, routes } },
    verdict: { kind: "allow" },
    limit: { kind: "within" },
  };
  for (;;) {
    const step = nextStep(facts);
    if (typeof step !== "string") return step.kind;
    if (step === "file") facts = { ...facts, file: fact(hasIndex) };
    else if (step === "single-page") facts = { ...facts, singlePage: fact(hasSinglePage) };
    // A not-found page is no file that answers as one.
    else if (step === "not-found-page") facts = { ...facts, notFoundPage: fact(false) };
    else return undefined;
  }
}

function expectedFile(host: string, file: ManifestFile, prefix: string): ProbeExpectation {
  const expected = { kind: "file", digest: file.sha256, size: file.size } as const;
  return { host, path: file.path.slice(prefix.length), expected };
}

function picked(table: ManifestTable, prefix: string, manifest: string): readonly ManifestFile[] {
  const { first, end } = table.range(prefix);
  if (end <= first) return [];
  const count = end - first;
  const at = new Set([first, end - 1, table.largest(first, end)]);
  for (let i = 0; i < pickedMax; i++) {
    const random = Number.parseInt(manifest.slice(3 * i, 3 * i + 8), 16);
    at.add(first + (Number.isNaN(random) ? 0 : random % count));
  }
  return [...at].map((i) => table.at(i)).filter((file) => file !== undefined);
}

/** Says what is wrong with an answer, or returns undefined if it is as expected. */
export function probeFault(
  { host, path, expected }: ProbeExpectation,
  answer: ProbeAnswer | undefined,
): string | undefined {
  const what = `${host} ${path === null ? "/" : JSON.stringify(path.slice(0, 200))}`;
  if (answer === undefined) return `${what} was not answered`;
  if (answer.kind === "failed") return `${what}: ${answer.reason}`;
  if (answer.kind === "damaged") return `${what} is damaged on this disk`;
  if (expected === null) return undefined;
  if (expected.kind === "file" && answer.kind === "file") {
    if (answer.digest === expected.digest && answer.size === expected.size) return undefined;
    return `${what} is another file than the manifest says (${answer.digest})`;
  }
  return answer.kind === expected.kind
    ? undefined
    : `${what}: ${answer.kind === "none" ? "the file is not found" : "there should be no file"}`;
}
