// Searches the request logs of a domain at many sites: newest first below a place, or in the order of arrival after
// one. Synchronous, in the reading thread, a step of bounded work at a time; it writes nothing.
//
// Invariants: the walk shows what had arrived when it began, each record once, in the order (us, day, id). Whoever
// follows from that moment gets what arrived since, each record once, in the order of arrival (day, id). A step looks
// at one record at least, so that whoever asks again comes to the end.

import type { RequestRecord } from "../../wire/request-log.ts";
import type { DayRow, DaySpan } from "./log-day-view.ts";
import type { DayView, LogDays } from "./log-days.ts";
import {
  arrivalStart,
  formatPosition,
  hadArrived,
  toMicros,
  walkStart,
  type ArrivalPlace,
  type LogPosition,
  type SearchPlace,
} from "./log-position.ts";
import { matches, type RecordFilter } from "./record-filter.ts";
import { showRequest } from "./shown-requests.ts";

/** What is searched, and where to begin. */
export type SearchRequest = {
  readonly siteIds: readonly number[];
  /** A main domain. */
  readonly domain: string;
  readonly filter: RecordFilter;
  /** Seconds since the epoch, both included. */
  readonly since: number | undefined;
  readonly until: number | undefined;
  /** The walk goes on here; at most one of the two is there. */
  readonly after: SearchPlace | undefined;
  /** What came after this is wanted. */
  readonly follow: ArrivalPlace | undefined;
  /** Only the record at this place is wanted. */
  readonly only: LogPosition | undefined;
  readonly limit: number;
  /** The most records that this step may look at, and how long it may take. */
  readonly rowsMax: number;
  readonly msMax: number;
};

export type SearchStep = {
  readonly kind: "found";
  /** JSON texts of `RequestEntry` (`wire/customer/requests.ts`). */
  readonly entries: readonly string[];
  /** How many records were looked at. */
  readonly looked: number;
  /** When the oldest of them happened, in µs; undefined if there was none. */
  readonly oldestUs: number | undefined;
  /** Whether nothing is left to look at. */
  readonly isAll: boolean;
  /** Where the walk goes on, if something is left of it. */
  readonly after: SearchPlace | undefined;
  /** What arrives after this is not looked at, or not yet. */
  readonly follow: ArrivalPlace;
};

type Bounds = {
  readonly below: LogPosition;
  readonly sinceUs: number;
  readonly arrived: ArrivalPlace;
};

/** How many records are looked at between two looks at the clock. */
const lookStep = 128;
/** Rows that are read at once: few at first, for most series of a day have none of the newest. */
const chunkFirst = 8;
const chunkMost = 512;
/** How many numbers of a file are passed at once, and the most rows taken of them. */
const passedAtOnce = 5_000;
const takenAtOnce = 500;
/** The most characters of the entries of one step; the longest entry has some 60,000. */
const charsMax = 2 * 2 ** 20;

export class LogSearch {
  readonly #days: LogDays;
  /** Returns the span of a day; undefined if it is gone. */
  readonly #spanOf: (day: string) => DaySpan | undefined;
  /** The day whose file is being read, for when it turns out to be broken. */
  reading = "";

  constructor(days: LogDays, spanOf: (day: string) => DaySpan | undefined) {
    this.#days = days;
    this.#spanOf = spanOf;
  }

  step(request: SearchRequest): SearchStep {
    const taken = new Taken(request);
    const { only, follow } = request;
    try {
      if (only !== undefined) return this.#one(request, only, taken);
      return follow === undefined
        ? this.#walk(request, taken)
        : this.#arrived(request, follow, taken);
    } finally {
      this.#days.closeOldest();
    }
  }

  /** Returns one record and its site; undefined if there is none at the place, or it is of another domain or site. */
  record(place: LogPosition, domain: string, siteIds: readonly number[]) {
    this.reading = place.day;
    if (!this.#days.list().includes(place.day)) return undefined;
    const found = this.#days.view(place.day)?.record(place.id);
    this.#days.closeOldest();
    return found?.atUs === place.us && found.domain === domain && siteIds.includes(found.siteId)
      ? { siteId: found.siteId, record: recordOf(found.line) }
      : undefined;
  }

  #one(request: SearchRequest, place: LogPosition, taken: Taken): SearchStep {
    const { domain, siteIds, since, until } = request;
    const found = this.record(place, domain, siteIds);
    const isWithin = place.us >= toMicros(since ?? 0) && place.us <= toMicros(until ?? Infinity);
    if (found !== undefined && isWithin) taken.look(place, found.record, found.siteId);
    return taken.end({ isAll: true, follow: this.#newest() });
  }

  #walk(request: SearchRequest, taken: Taken): SearchStep {
    const { after, since, until } = request;
    const arrived = after?.arrived ?? this.#newest();
    const bounds: Bounds = {
      below: belowOf(after?.below, until),
      sinceUs: toMicros(since ?? 0),
      arrived,
    };
    const rest = this.#candidates(bounds);
    const heads: Head[] = [];
    for (;;) {
      let head = newestOf(heads);
      while (rest[0] !== undefined && rest[0].span.lastUs >= (head?.row.atUs ?? 0)) {
        heads.push(...this.#headsOf(rest[0].day, request, bounds));
        rest.shift();
        head = newestOf(heads);
        this.#days.closeOldest(new Set(heads.map(({ day }) => day)));
      }
      if (head === undefined) return taken.end({ isAll: true, follow: arrived });
      const { row, day, siteId } = head;
      const below = { us: row.atUs, day, id: row.id };
      if (hadArrived(below, arrived)) taken.look(below, recordOf(row.line), siteId);
      else taken.pass(row.atUs);
      if (taken.isFull) return taken.end({ after: { below, arrived }, follow: arrived });
      this.reading = day;
      if (!head.advance()) heads.splice(heads.indexOf(head), 1);
    }
  }

  #arrived(request: SearchRequest, from: ArrivalPlace, taken: Taken): SearchStep {
    const { siteIds, domain, since, until } = request;
    const [sinceUs, untilUs] = [toMicros(since ?? 0), toMicros(until ?? Infinity)];
    let place = from;
    for (const day of this.#days.list().filter((one) => one >= from.day)) {
      this.reading = day;
      const view = this.#days.view(day);
      if (view === undefined) continue;
      const lastId = view.lastId();
      // A file that was begun anew after the one before was set aside counts from 1 again.
      let id = day === from.day && from.id <= lastId ? from.id : 0;
      const sites = new Map(
        view.seriesOf(domain, siteIds).map(({ seriesId, siteId }) => [seriesId, siteId]),
      );
      while (id < lastId) {
        const through = sites.size === 0 ? lastId : Math.min(id + passedAtOnce, lastId);
        const rows =
          sites.size === 0 ? [] : view.arrivedOf([...sites.keys()], id, through, takenAtOnce);
        for (const row of rows) {
          place = { day, id: row.id };
          const { atUs: us, line, seriesId } = row;
          if (us < sinceUs || us > untilUs) taken.pass(us);
          else taken.look({ us, ...place }, recordOf(line), sites.get(seriesId) ?? 0);
          if (taken.isFull) return taken.end({ follow: place });
        }
        id = rows.length < takenAtOnce ? through : place.id;
        place = { day, id };
        taken.passNumbers(sites.size === 0 ? 0 : passedAtOnce);
        if (taken.isFull) return taken.end({ follow: place });
      }
      place = { day, id: lastId };
      this.#days.closeOldest();
    }
    return taken.end({ isAll: true, follow: place });
  }

  /** Returns the place of all that has arrived. */
  #newest(): ArrivalPlace {
    for (const day of this.#days.list().toReversed()) {
      this.reading = day;
      const view = this.#days.view(day);
      if (view !== undefined) return { day, id: view.lastId() };
    }
    return arrivalStart;
  }

  /** Returns the days that may hold something between the bounds, the one that reaches furthest first. */
  #candidates({ below, sinceUs, arrived }: Bounds) {
    const days = this.#days.list();
    const newest = days.at(-1);
    return days
      .filter((day) => day <= arrived.day)
      .flatMap((day) => {
        this.reading = day;
        const span = day === newest ? anyTime : this.#spanOf(day);
        this.#days.closeOldest();
        return span !== undefined && span.lastUs >= sinceUs && span.firstUs <= below.us
          ? [{ day, span }]
          : [];
      })
      .sort((a, b) => b.span.lastUs - a.span.lastUs);
  }

  #headsOf(day: string, { siteIds, domain }: SearchRequest, bounds: Bounds): readonly Head[] {
    this.reading = day;
    const view = this.#days.view(day);
    if (view === undefined) return [];
    return view.seriesOf(domain, siteIds).flatMap(({ seriesId, siteId }) => {
      const head = Head.of(view, { day, seriesId, siteId }, bounds);
      return head === undefined ? [] : [head];
    });
  }
}

/** The span of a file that is still being written, which is not known. */
const anyTime: DaySpan = { firstUs: 0, lastUs: Number.MAX_SAFE_INTEGER };

type OfSeries = { readonly day: string; readonly seriesId: number; readonly siteId: number };

/** The newest rows of one series in one day's file, read some at a time. */
class Head {
  readonly day: string;
  readonly siteId: number;
  readonly #view: DayView;
  readonly #seriesId: number;
  readonly #sinceUs: number;
  #rows: readonly DayRow[];
  #at = 0;
  #chunk = chunkFirst;
  row: DayRow;

  /** Returns undefined if the series has nothing between the bounds. */
  static of(view: DayView, of: OfSeries, { below, sinceUs }: Bounds): Head | undefined {
    const { day, seriesId } = of;
    const belowId = day < below.day ? Number.MAX_SAFE_INTEGER : day === below.day ? below.id : 0;
    const rows = view.below({ seriesId, belowUs: below.us, belowId, sinceUs, limit: chunkFirst });
    const [row] = rows;
    return row === undefined ? undefined : new Head(view, of, sinceUs, rows, row);
  }

  private constructor(
    view: DayView,
    { day, seriesId, siteId }: OfSeries,
    sinceUs: number,
    rows: readonly DayRow[],
    row: DayRow,
  ) {
    this.day = day;
    this.siteId = siteId;
    this.#view = view;
    this.#seriesId = seriesId;
    this.#sinceUs = sinceUs;
    this.#rows = rows;
    this.row = row;
  }

  /** Takes the next row. Returns whether there is one. */
  advance(): boolean {
    this.#at++;
    if (this.#at === this.#rows.length && this.#rows.length === this.#chunk) {
      this.#chunk = Math.min(this.#chunk * 4, chunkMost);
      this.#rows = this.#view.below({
        seriesId: this.#seriesId,
        belowUs: this.row.atUs,
        belowId: this.row.id,
        sinceUs: this.#sinceUs,
        limit: this.#chunk,
      });
      this.#at = 0;
    }
    const row = this.#rows[this.#at];
    if (row !== undefined) this.row = row;
    return row !== undefined;
  }
}

/** What a step has found, and what it may still do. */
class Taken {
  readonly #request: SearchRequest;
  readonly #began = performance.now();
  readonly #entries: string[] = [];
  #chars = 0;
  #looked = 0;
  #untilClock = lookStep;
  #oldestUs: number | undefined;
  #isLate = false;

  constructor(request: SearchRequest) {
    this.#request = request;
  }

  get isFull(): boolean {
    const { limit, rowsMax } = this.#request;
    const { length } = this.#entries;
    return length >= limit || this.#looked >= rowsMax || this.#chars >= charsMax || this.#isLate;
  }

  look(place: LogPosition, record: RequestRecord, siteId: number): void {
    this.pass(place.us);
    if (!matches(this.#request.filter, record)) return;
    const entry = JSON.stringify(showRequest(record, formatPosition(place), siteId));
    this.#entries.push(entry);
    this.#chars += entry.length;
  }

  pass(us: number): void {
    this.#oldestUs = Math.min(us, this.#oldestUs ?? us);
    this.passNumbers(1);
  }

  passNumbers(count: number): void {
    this.#looked += count;
    this.#untilClock -= count;
    if (this.#untilClock > 0) return;
    this.#untilClock = lookStep;
    this.#isLate = performance.now() - this.#began >= this.#request.msMax;
  }

  end(at: {
    readonly isAll?: boolean;
    readonly after?: SearchPlace;
    readonly follow: ArrivalPlace;
  }): SearchStep {
    const { isAll = false, after, follow } = at;
    const [entries, looked, oldestUs] = [this.#entries, this.#looked, this.#oldestUs];
    return { kind: "found", entries, looked, oldestUs, isAll, after, follow };
  }
}

/** The line was checked when it was taken in. */
function recordOf(line: string): RequestRecord {
  return JSON.parse(line) as RequestRecord;
}

function belowOf(after: LogPosition = walkStart, until?: number): LogPosition {
  if (until === undefined || toMicros(until) >= after.us) return after;
  return { ...walkStart, us: toMicros(until) };
}

function newestOf(heads: readonly Head[]): Head | undefined {
  let newest: Head | undefined;
  for (const head of heads) if (newest === undefined || isAbove(head, newest)) newest = head;
  return newest;
}

function isAbove(a: Head, b: Head): boolean {
  if (a.row.atUs !== b.row.atUs) return a.row.atUs > b.row.atUs;
  return a.day === b.day ? a.row.id > b.row.id : a.day > b.day;
}
