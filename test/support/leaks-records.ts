// What the origin of the leak hunt remembers of each answer: who asked, what it was told of him, and what it meant to say of who else may have it.

import type { Meaning } from "./leaks-words.ts";
import type { Cookie } from "./leaks-rules.ts";

/** A request, as its visitor sent it or as it reached the origin. Names of fields are in lower case. */
export type AskedBy = {
  readonly who: number;
  readonly domain: string;
  readonly scheme: "http" | "https";
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly hasLoneMark: boolean;
  readonly fields: ReadonlyMap<string, string>;
  readonly cookies: readonly Cookie[];
};

/** An answer of the origin, and the request that caused it as it arrived there. */
export type Made = AskedBy & {
  readonly no: number;
  /** The edition of the site's rules under which the agent asked. */
  readonly edition: number;
  readonly askedMs: number;
  /** By the wall clock. */
  readonly askedWallMs: number;
  readonly answeredMs: number;
  /** The media type. */
  readonly type: string;
  readonly status: number;
  /** Undefined for a 304 that says nothing of it: what it confirms keeps its own. */
  readonly meaning: Meaning | undefined;
  /** Undefined for `Vary: *`. */
  readonly vary: readonly string[] | undefined;
  readonly setsCookies: readonly string[];
  /** The fields as sent, for whoever reads of a leak. */
  readonly said: readonly (readonly [name: string, value: string])[];
  readonly body: string;
};

export class Records {
  readonly #byNo = new Map<number, Made>();
  readonly #byPath = new Map<string, Made[]>();
  readonly #reached = new Map<number, number>();
  #last = 0;

  next(): number {
    return ++this.#last;
  }

  get count(): number {
    return this.#last;
  }

  add(made: Made): void {
    this.#byNo.set(made.no, made);
    const at = `${made.domain}${made.path}`;
    const same = this.#byPath.get(at);
    if (same === undefined) this.#byPath.set(at, [made]);
    else same.push(made);
  }

  of(no: number): Made | undefined {
    return this.#byNo.get(no);
  }

  /** A visitor has this answer. */
  reach(no: number, ms: number): void {
    if (!this.#reached.has(no)) this.#reached.set(no, ms);
  }

  /** Returns when it was with its visitor; Infinity for not yet. */
  reachedMs({ no }: Made): number {
    return this.#reached.get(no) ?? Infinity;
  }

  at(domain: string, path: string): readonly Made[] {
    return this.#byPath.get(`${domain}${path}`) ?? [];
  }

  /** Forgets a path that nobody asks for any more. */
  forget(domain: string, path: string): void {
    for (const { no } of this.at(domain, path)) {
      this.#byNo.delete(no);
      this.#reached.delete(no);
    }
    this.#byPath.delete(`${domain}${path}`);
  }
}
