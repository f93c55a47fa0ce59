// What the plan of a request (core/serving/request-plan.ts) wants to know of a site, learned from a table of hosts: of a request that is answered, and of one
// that is only thought of.

import type { Scheme } from "../../core/http/client-address.ts";
import type { RequestTarget } from "../../core/http/request-path.ts";
import type { RequestHead } from "../../core/serving/request-check.ts";
import {
  nextStep,
  type RequestAnswer,
  type RequestFacts,
  type StoredFact,
  type Wanted,
} from "../../core/serving/request-plan.ts";
import type { LimitFact } from "../../core/limits/limit-verdict.ts";
import type { CacheRoute } from "../../core/serving/cache-route.ts";
import type { Verdict } from "../../core/serving/verdict.ts";
import {
  findPage,
  noFile,
  routeStatic,
  type FileFound,
  type SiteFile,
} from "./files/site-files.ts";
import type { HostFound, HostTable, ServedSite } from "./pool/host-table.ts";

/** Disposing it releases the files that were found. */
export class SiteFacts<Head extends RequestHead = RequestHead>
  implements RequestFacts, AsyncDisposable
{
  readonly request: Head;
  target: RequestTarget | undefined;
  readonly scheme: Scheme;
  readonly startedWallMs: number;
  host: HostFound | undefined;
  verdict: Pick<Verdict, "kind" | "set"> | undefined;
  limit: LimitFact | undefined;
  file: FileFound | undefined;
  singlePage: FileFound | undefined;
  notFoundPage: FileFound | undefined;
  rule: CacheRoute | undefined;
  stored: StoredFact | undefined;

  constructor(
    request: Head,
    target: RequestTarget | undefined,
    scheme: Scheme,
    startedWallMs: number,
  ) {
    this.startedWallMs = startedWallMs;
    this.request = request;
    this.target = target;
    this.scheme = scheme;
  }

  /** Takes the host, and the target as its site reads it. */
  found(host: HostFound): void {
    this.host = host;
    const { target, request } = this;
    if (host.kind !== "served" || target === undefined) return;
    this.target = host.compiled?.routes.target(target, request.method) ?? target;
  }

  /** The plan wants nothing of a site before it is known. */
  get site(): ServedSite {
    if (this.host?.kind === "served" && this.host.compiled !== undefined) return this.host.compiled;
    throw new TypeError("no site is known yet");
  }

  /** Nor of a target that names nothing. */
  get asked(): RequestTarget {
    if (this.target !== undefined) return this.target;
    throw new TypeError("the target names nothing");
  }

  /** The file that answers if the answer is a file or the single page. */
  get foundFile(): SiteFile | undefined {
    if (this.file?.kind === "file") return this.file.file;
    return this.singlePage?.kind === "file" ? this.singlePage.file : undefined;
  }

  /** Undefined: it is known at once. */
  learnOfSite(wanted: "file" | "single-page" | "not-found-page"): Promise<void> | undefined {
    if (wanted !== "file" || this.site.files.absent?.has(this.asked.rawPath) !== true)
      return this.#lookFor(wanted);
    this.file = noFile;
    return undefined;
  }

  async #lookFor(wanted: "file" | "single-page" | "not-found-page"): Promise<void> {
    const { files, site } = this.site;
    if (wanted === "file") {
      const { rawPath } = this.asked;
      this.file = await routeStatic(files, rawPath, site.index);
      if (this.file.kind === "none") files.absent?.add(rawPath);
    } else if (wanted === "single-page") this.singlePage = await findPage(files, site.single_page);
    else this.notFoundPage = await findPage(files, site.not_found);
  }

  /** Whether there is anything to release. */
  get holdsFiles(): boolean {
    const { file, singlePage, notFoundPage } = this;
    return [file, singlePage, notFoundPage].some((found) => found?.kind === "file");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const found of [this.file, this.singlePage, this.notFoundPage])
      if (found?.kind === "file") await found.file[Symbol.asyncDispose]();
  }
}

/**
 * Foresees the answer to a visitor who is let in, as far as the table knows: the answer itself, or that the
 * cache is asked.
 */
export async function foresee(
  facts: SiteFacts,
  table: HostTable,
  authority: string,
): Promise<RequestAnswer | Extract<Wanted, "stored">> {
  for (;;) {
    const step = nextStep(facts);
    if (typeof step !== "string") return step;
    switch (step) {
      case "host":
        facts.found(table.route(authority));
        break;
      case "verdict":
        facts.verdict = { kind: "allow" };
        break;
      case "limit":
        // Only thought of: nothing is spent.
        facts.limit = { kind: "within" };
        break;
      case "rule":
        facts.rule = facts.site.routes.cache(facts.asked, facts.request);
        break;
      case "stored":
        return step;
      default:
        await facts.learnOfSite(step);
    }
  }
}
