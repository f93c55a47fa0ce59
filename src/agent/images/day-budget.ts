// How many pictures of each domain this instance has tried today: `images.variants_per_day_max` bounds what a domain takes of the encoder, and of the room of the cache.
//
// Everything that is handed to the encoder is spent, whatever comes of it: a form that is not worth it and a picture that cannot be read cost the same as one that is made. What
// several workers ask for at once is handed over, and is spent, once. The day is that of UTC. What was made is counted apart: it is what reports tell.
//
// It is kept durably, so that a restart does not begin the day anew. What is written is ahead of what is spent by up to `stepJobs`, so that not each picture costs a write
// that is synced; a crash costs a domain so many of its day at most, and an orderly stop none.

/** Where the day is kept: what `read` returns is what `write` was given last, before this start as well. */
export type DayStore = {
  readonly read: () => unknown;
  readonly write: (day: DayOfImages) => void;
};

export type DayOfImages = {
  /** As in 2026-11-29. */
  readonly day: string;
  /** How many were handed to the encoder, by domain. */
  readonly spent: Readonly<Record<string, number>>;
};

type Counts = { made: number; blocked: number };

/** What was made of a domain's pictures, and what was held back, since the start of the agent. */
export type DomainVariants = Readonly<Counts>;

/** As reports tell it: what of that was today. */
export type ReportedVariants = DomainVariants & {
  readonly today: Readonly<Counts> & {
    /** When the counting began, ISO 8601 in UTC. */
    readonly since: string;
    readonly day: string;
  };
};

const stepJobs = 16;

export class DayBudget implements Disposable {
  readonly #store: DayStore;
  readonly #now: () => Date;
  #day: string;
  readonly #spent = new Map<string, number>();
  /** What is written for each domain. */
  readonly #kept = new Map<string, number>();
  readonly #since: string;
  readonly #sinceStart = new Map<string, Counts>();
  readonly #sinceMidnight = new Map<string, Counts>();

  constructor(store: DayStore, now: () => Date) {
    this.#store = store;
    this.#now = now;
    this.#since = now().toISOString();
    const { day, spent } = readDay(store.read());
    this.#day = day;
    for (const [domain, count] of Object.entries(spent)) {
      this.#spent.set(domain, count);
      this.#kept.set(domain, count);
    }
  }

  /** Whether the domain has none left today. */
  isSpent(domain: string, perDayMax: number): boolean {
    this.#turnDay();
    return (this.#spent.get(domain) ?? 0) >= perDayMax;
  }

  /** Takes one of the domain's day. False: it has none left. Throws where it cannot be written; it is taken then all the same. */
  take(domain: string, perDayMax: number): boolean {
    if (this.isSpent(domain, perDayMax)) return false;
    const spent = (this.#spent.get(domain) ?? 0) + 1;
    this.#spent.set(domain, spent);
    if (spent > (this.#kept.get(domain) ?? 0)) this.#keep(domain, spent);
    return true;
  }

  /** Counts one that was made, of those that were taken. */
  made(domain: string): void {
    this.#turnDay();
    this.#count(domain, "made");
  }

  /** Counts one that was held back. */
  block(domain: string): void {
    this.#turnDay();
    this.#count(domain, "blocked");
  }

  /** The counts of every domain of which something was made or held back since the start. */
  sinceStart(): ReadonlyMap<string, DomainVariants> {
    return this.#sinceStart;
  }

  /** The same, with what fell on this day. */
  reported(): ReadonlyMap<string, ReportedVariants> {
    this.#turnDay();
    const day = { since: this.#since, day: this.#day };
    return new Map(
      [...this.#sinceStart].map(([domain, counts]) => {
        const today = this.#sinceMidnight.get(domain) ?? { made: 0, blocked: 0 };
        return [domain, { ...counts, today: { ...day, ...today } }];
      }),
    );
  }

  /** Writes what is spent, exactly. Throws where it cannot be written. */
  [Symbol.dispose](): void {
    if (this.#spent.size > 0) this.#write(this.#spent);
  }

  #keep(domain: string, spent: number): void {
    this.#kept.set(domain, spent + stepJobs - 1);
    this.#write(this.#kept);
  }

  #write(spent: ReadonlyMap<string, number>): void {
    this.#store.write({ day: this.#day, spent: Object.fromEntries(spent) });
  }

  #turnDay(): void {
    const today = this.#now().toISOString().slice(0, 10);
    if (today === this.#day) return;
    this.#day = today;
    this.#spent.clear();
    this.#kept.clear();
    this.#sinceMidnight.clear();
  }

  #count(domain: string, what: keyof Counts): void {
    for (const counts of [this.#sinceStart, this.#sinceMidnight]) {
      const before = counts.get(domain) ?? { made: 0, blocked: 0 };
      counts.set(domain, { ...before, [what]: before[what] + 1 });
    }
  }
}

/** What cannot be read counts as nothing spent on no day. */
function readDay(raw: unknown): DayOfImages {
  const { day, spent } = Object(raw) as { day?: unknown; spent?: unknown };
  if (typeof day !== "string") return { day: "", spent: {} };
  const counts = Object.entries(Object(spent) as Record<string, unknown>).filter(
    (one): one is [string, number] => Number.isSafeInteger(one[1]) && Number(one[1]) >= 0,
  );
  return { day, spent: Object.fromEntries(counts) };
}
