// Visitors who read pairs of files while versions change, each in a way of its own: over a kept connection or new ones, from the middle on, or
// asking whether what they have is still good. Each answer is judged: whole, of versions that it may be of, none older than what anybody had before.

import { Agent } from "node:http";
import { visit, type Visit, type VisitOptions } from "./edge.ts";
import { domain } from "./release-rig.ts";
import type { Span } from "./versioned-site.ts";

export interface VisitedSite {
  readonly files: number;
  path(no: number): string;
  middle(no: number): number;
  /** `begun`: the newest that had been seen when it was asked for. Undefined: no version has these bytes from `at` on. */
  spanOf(no: number, body: string, at: number, begun: number): Span | undefined;
}

export type VisitCounts = {
  answers: number;
  pairs: number;
  /** Parts, and what the visitor had already. */
  partial: number;
  unchanged: number;
  /** Nobody answered, or not to the end. */
  unanswered: number;
  /** Errors, mixed or torn answers. */
  readonly failed: string[];
  /** Answers older than what somebody had before they were asked for. */
  readonly backward: string[];
};

/** What somebody was given of the site, over all visitors. */
export class VersionOrder {
  readonly counts: VisitCounts = {
    answers: 0,
    pairs: 0,
    partial: 0,
    unchanged: 0,
    unanswered: 0,
    failed: [],
    backward: [],
  };
  #newest = 0;

  get newest(): number {
    return this.#newest;
  }

  /** Somebody was told that this one is served. */
  promised(version: number): void {
    this.#newest = Math.max(this.#newest, version);
  }

  /** `begun`: what `newest` was when it was asked for. */
  seen(what: string, { from, to }: Span, begun: number): void {
    this.counts.answers++;
    if (to < begun) this.counts.backward.push(`${what}: version ${from} to ${to} after ${begun}`);
    this.promised(from);
  }
}

type Way = {
  readonly isKept?: true;
  readonly isConditional?: true;
  readonly isPartial?: true;
};
/** Visitors take them in turns. */
const ways: readonly Way[] = [
  { isKept: true },
  {},
  { isKept: true, isConditional: true },
  { isPartial: true },
];
/** After an answer that did not come. */
const restMs = 30;

export type VisitorsOptions = {
  readonly port: number;
  readonly site: VisitedSite;
  readonly order: VersionOrder;
  readonly signal: AbortSignal;
};

/** As many visitors at once; resolves when the signal has ended them. */
export async function visitPairs(visitors: number, options: VisitorsOptions): Promise<void> {
  const all = Array.from({ length: visitors }, async (_, no) => {
    await using visitor = new Visitor(options, ways[no % ways.length] ?? {});
    await visitor.run();
  });
  await Promise.all(all);
}

class Visitor implements AsyncDisposable {
  readonly #options: VisitorsOptions;
  readonly #way: Way;
  readonly #agent: Agent | undefined;
  /** Of the conditional: by path, what was answered last. */
  readonly #had = new Map<string, { readonly etag: string; readonly body: string }>();

  constructor(options: VisitorsOptions, way: Way) {
    this.#options = options;
    this.#way = way;
    this.#agent = way.isKept ? new Agent({ keepAlive: true, maxSockets: 1 }) : undefined;
  }

  async run(): Promise<void> {
    const { site, order, signal } = this.#options;
    // Conditions are met only where somebody comes again.
    const files = this.#way.isConditional ? Math.min(site.files, 50) : site.files;
    while (!signal.aborted) {
      const [one, other] = [Math.random(), Math.random()];
      const isPair =
        (await this.#read(Math.floor(one * files))) &&
        (await this.#read(Math.floor(other * files)));
      if (isPair) order.counts.pairs++;
    }
  }

  /** False when nobody answered. */
  async #read(no: number): Promise<boolean> {
    const { site, order, port } = this.#options;
    const path = `/${site.path(no)}`;
    const at = this.#way.isPartial ? site.middle(no) : 0;
    const begun = order.newest;
    const answer = await visit(port, path, this.#asking(path, at)).catch(() => undefined);
    if (answer === undefined) {
      order.counts.unanswered++;
      await new Promise((resolve) => setTimeout(resolve, restMs));
      return false;
    }
    const body = this.#bodyOf(path, answer);
    const from = answer.status === 206 ? at : 0;
    const span = body === undefined ? undefined : site.spanOf(no, body, from, begun);
    if (span !== undefined) order.seen(path, span, begun);
    else
      order.counts.failed.push(
        `${path}: ${answer.status} ${shown(body ?? answer.body.toString())}`,
      );
    return true;
  }

  #asking(path: string, at: number): VisitOptions {
    const { isConditional } = this.#way;
    const etag = isConditional ? this.#had.get(path)?.etag : undefined;
    return {
      host: domain,
      agent: this.#agent,
      headers: {
        ...(etag === undefined ? {} : { "if-none-match": etag }),
        ...(at === 0 ? {} : { range: `bytes=${at}-` }),
      },
    };
  }

  /** Undefined: it is none that a visitor can use. */
  #bodyOf(path: string, { status, headers, body }: Visit): string | undefined {
    const { counts } = this.#options.order;
    if (status === 304) {
      counts.unchanged++;
      return this.#had.get(path)?.body;
    }
    if (status !== 200 && status !== 206) return undefined;
    if (status === 206) counts.partial++;
    const text = body.toString();
    if (this.#way.isConditional) this.#had.set(path, { etag: String(headers["etag"]), body: text });
    return text;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent?.destroy();
  }
}

const shown = (body: string): string =>
  `${body.length} bytes: ${[...new Set(body.split("\n"))].slice(0, 4).join(" | ").slice(0, 300)}`;
