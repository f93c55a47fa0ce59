// Reads the request logs of all days: pages of a domain, newest first, merged from the days that reach into
// the time asked for. Synchronous, in the reading thread. It writes nothing; days that go or begin meanwhile
// are seen at the next read.
//
// Invariant: the order is (us, day, id), which no later record changes, so a walk meets every record that was
// there when it began exactly once.

import { isCorruption } from "../../base/sqlite.ts";
import type { CanarySeen } from "./log-day.ts";
import type { DayRow, DaySpan } from "./log-day-view.ts";
import type { LossDays, LossOfDay } from "./log-losses.ts";
import type { LogDays } from "./log-days.ts";
import { LogSearch, type SearchRequest, type SearchStep } from "./log-search.ts";
import { formatPosition, toMicros, walkStart, type LogPosition } from "./log-position.ts";

export type ReadRequest = {
  readonly siteId: number;
  /** A main domain. */
  readonly domain: string;
  readonly limit: number;
  readonly after: LogPosition | undefined;
  /** The time of the request in seconds since the epoch, both bounds included. */
  readonly since: number | undefined;
  readonly until: number | undefined;
};
export type ReadPage = {
  readonly kind: "page";
  /** Records as JSON texts, newest first. */
  readonly lines: readonly string[];
  /** Where to go on; undefined at the end. */
  readonly next: string | undefined;
};
/** Says that the file of that day cannot be read. */
export type BrokenDay = { readonly kind: "broken"; readonly day: string; readonly message: string };

/** The span of a file that is still being written, which is not known. */
const anyTime: DaySpan = { firstUs: 0, lastUs: Number.MAX_SAFE_INTEGER };

type Bounds = { readonly below: LogPosition; readonly sinceUs: number };
type Head = { readonly day: string; readonly rows: IterableIterator<DayRow>; row: DayRow };
type Candidate = { readonly day: string; readonly span: DaySpan };

export class LogArchive implements Disposable {
  readonly #days: LogDays;
  /** The spans of files that are no longer written. */
  readonly #spans = new Map<string, DaySpan>();
  readonly #search: LogSearch;

  /** It closes `days` when it is disposed. */
  constructor(days: LogDays) {
    this.#days = days;
    this.#search = new LogSearch(this.#days, (day) => this.#span(day));
  }

  /** Takes one step of a search. */
  search(request: SearchRequest): SearchStep | BrokenDay {
    return this.#unlessBroken(() => this.#search.step(request));
  }

  /** Returns a record of the domain at one of the sites; undefined if it is none. */
  record(place: LogPosition, domain: string, siteIds: readonly number[]) {
    return this.#unlessBroken(() => this.#search.record(place, domain, siteIds));
  }

  read(request: ReadRequest): ReadPage | BrokenDay {
    const reading: Reading = { day: "" };
    const heads: Head[] = [];
    try {
      return this.#merge(request, heads, reading);
    } catch (error) {
      if (!isCorruption(error)) throw error;
      return { kind: "broken", day: reading.day, message: String(error) };
    } finally {
      for (const { rows } of heads) rows.return?.();
      this.#days.closeOldest();
    }
  }

  #unlessBroken<T>(action: () => T): T | BrokenDay {
    try {
      return action();
    } catch (error) {
      if (!isCorruption(error)) throw error;
      return { kind: "broken", day: this.#search.reading, message: String(error) };
    }
  }

  /** Returns the newest canary of each deployment site. */
  canaries(): readonly CanarySeen[] {
    const newest = this.#days.list().at(-1);
    return newest === undefined ? [] : (this.#days.view(newest)?.canaries() ?? []);
  }

  /** Returns what was lost in the newest `days` days, the newest first. */
  losses(days: number): LossDays {
    const losses: LossOfDay[] = [];
    const unreadable: string[] = [];
    const read = this.#days.list().toReversed().slice(0, days);
    for (const day of read) {
      try {
        for (const loss of this.#days.view(day)?.losses() ?? []) losses.push({ day, ...loss });
      } catch (error) {
        if (!isCorruption(error)) throw error;
        unreadable.push(day);
      }
      this.#days.closeOldest();
    }
    return { days: read, losses, unreadable };
  }

  /** Forgets days whose files are no longer what they were. */
  forget(days: readonly string[]): void {
    for (const day of days) this.#days.close(day);
    if (days.length > 0) this.#spans.clear(); // The day before one that is gone may be written again.
  }

  [Symbol.dispose](): void {
    this.#days[Symbol.dispose]();
  }

  #merge(request: ReadRequest, heads: Head[], reading: Reading): ReadPage {
    const { limit, since } = request;
    const bounds = { below: belowOf(request), sinceUs: since === undefined ? 0 : toMicros(since) };
    const rest = this.#candidates(bounds, reading);
    const lines: string[] = [];
    let last: LogPosition | undefined;
    for (;;) {
      let head = newestOf(heads);
      while (rest[0] !== undefined && rest[0].span.lastUs >= (head?.row.atUs ?? 0)) {
        const added = this.#rowsOf(rest[0].day, request, bounds, reading);
        if (added !== undefined) heads.push(added);
        rest.shift();
        head = newestOf(heads);
        this.#days.closeOldest(new Set(heads.map(({ day }) => day)));
      }
      if (head === undefined) return { kind: "page", lines, next: undefined };
      if (lines.length === limit)
        return { kind: "page", lines, next: last === undefined ? undefined : formatPosition(last) };
      lines.push(head.row.line);
      last = { us: head.row.atUs, day: head.day, id: head.row.id };
      reading.day = head.day;
      advance(head, heads);
    }
  }

  /** Returns the days that may hold something between the bounds, the one that reaches furthest first. */
  #candidates({ below, sinceUs }: Bounds, reading: Reading): Candidate[] {
    const days = this.#days.list();
    const newest = days.at(-1);
    return days
      .flatMap((day) => {
        reading.day = day;
        const span = day === newest ? anyTime : this.#span(day);
        this.#days.closeOldest();
        return span !== undefined && span.lastUs >= sinceUs && span.firstUs <= below.us
          ? [{ day, span }]
          : [];
      })
      .sort((a, b) => b.span.lastUs - a.span.lastUs);
  }

  #rowsOf(day: string, { siteId, domain }: ReadRequest, bounds: Bounds, reading: Reading) {
    reading.day = day;
    const { below, sinceUs } = bounds;
    const belowId = day < below.day ? Number.MAX_SAFE_INTEGER : day === below.day ? below.id : 0;
    const rows = this.#days
      .view(day)
      ?.search({ siteId, domain, belowUs: below.us, belowId, sinceUs });
    const first = rows?.next();
    return rows === undefined || first === undefined || first.done === true
      ? undefined
      : { day, rows, row: first.value };
  }

  /** Returns the span of a day, or undefined if the day is gone. */
  #span(day: string): DaySpan | undefined {
    const known = this.#spans.get(day);
    if (known !== undefined) return known;
    const span = this.#days.view(day)?.span();
    if (span !== undefined) this.#spans.set(day, span);
    return span;
  }
}

/** The day whose file is being read, for when it turns out to be broken. */
type Reading = { day: string };

function belowOf({ after = walkStart, until }: ReadRequest): LogPosition {
  if (until === undefined || toMicros(until) >= after.us) return after;
  return { ...walkStart, us: toMicros(until) };
}

function newestOf(heads: readonly Head[]): Head | undefined {
  const [first, ...others] = heads;
  return others.reduce(
    (best, head) => (best !== undefined && isAbove(best, head) ? best : head),
    first,
  );
}

function isAbove(a: Head, b: Head): boolean {
  return a.row.atUs === b.row.atUs ? a.day > b.day : a.row.atUs > b.row.atUs;
}

function advance(head: Head, heads: Head[]): void {
  const following = head.rows.next();
  if (following.done === true) heads.splice(heads.indexOf(head), 1);
  else head.row = following.value;
}
