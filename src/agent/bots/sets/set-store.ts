// The bot sets in agent.db; a set is complete or it is not applied. A delta is applied only to the version
// that it was made for, and only when count and digest come out as central says. Anything else is a mismatch,
// and the whole set is fetched while the last good one stays in force.

import { setImmediate } from "node:timers/promises";
import { AccelError } from "../../../core/faults.ts";
import { RangeReader } from "../../../core/addresses/range-list.ts";
import {
  changedSetDigest,
  emptySetDigest,
  type SetElement,
} from "../../../core/addresses/set-digest.ts";
import type { Sqlite, Statement } from "../../../base/sqlite.ts";
import type { JournalBody } from "../../../wire/journal.ts";
import type { SetDelta, SetVersion } from "../tables/table-messages.ts";

/**
 * What came of a delta. `applied`: it is durable now. `known`: it was applied before. `mismatch`: the whole
 * set must be fetched. `shrunk`: it is refused, for the set would lose more than half of at least a hundred
 * elements and central did not say that this is intended.
 */
export type DeltaOutcome = {
  readonly kind: "applied" | "known" | "mismatch" | "shrunk";
  readonly reason: string;
};

const shrinkGuardedCount = 100;

type Row = SetVersion & { readonly list: number };

export class SetStore {
  readonly #db: Sqlite;
  readonly #lists: SetLists;
  readonly #find: Statement<[host: string, kind: string], Row>;
  readonly #all: Statement<[], SetVersion>;
  readonly #put: Statement<
    [host: string, kind: string, version: number, count: number, digest: string, list: number]
  >;
  readonly #drop: Statement<[host: string, kind: string]>;
  readonly #onDelta: (delta: SetDelta) => void;
  readonly #ranges = new RangeReader();

  /** `onDelta` is called with each change that was committed. */
  constructor(db: Sqlite, onDelta: (delta: SetDelta) => void = () => undefined) {
    this.#db = db;
    this.#lists = new SetLists(db);
    this.#onDelta = onDelta;
    this.#find = db.prepare(
      "SELECT host, kind, version, count, digest, list FROM bot_set WHERE host = ? AND kind = ?",
    );
    this.#all = db.prepare(
      "SELECT host, kind, version, count, digest FROM bot_set ORDER BY host, kind",
    );
    this.#put = db.prepare(
      "INSERT OR REPLACE INTO bot_set (host, kind, version, count, digest, list, changed_at) VALUES (?, ?, ?, ?, ?, ?, unixepoch())",
    );
    this.#drop = db.prepare("DELETE FROM bot_set WHERE host = ? AND kind = ?");
  }

  list(): readonly SetVersion[] {
    return this.#all.all();
  }

  /**
   * Returns why a set may not take the place of the one that is held, or undefined if it may. An accident at
   * central must not open the gates.
   */
  refusal(want: Pick<SetVersion, "host" | "kind" | "count">, isMeant: boolean): string | undefined {
    const count = this.#find.get(want.host, want.kind)?.count ?? 0;
    if (isMeant || count < shrinkGuardedCount || want.count * 2 >= count) return undefined;
    return `the ${want.kind} set of ${want.host} would shrink from ${count} to ${want.count} elements and central did not say that this is intended`;
  }

  /** Applies a change in one immediate transaction, synchronous = FULL. It is idempotent. */
  applyDelta(body: JournalBody<"bots.changed">): DeltaOutcome {
    const { domain: host, set: kind, from_version: from, to_version: to, added, removed } = body;
    const found = this.#find.get(host, kind);
    const have = found ?? { version: 0, count: 0, digest: emptySetDigest };
    if (have.version === to && have.digest === body.digest) return { kind: "known", reason: "" };
    if (have.version !== from)
      return {
        kind: "mismatch",
        reason: `the change starts from version ${from}, but this agent has ${have.version}`,
      };
    const refusal = this.refusal({ host, kind, count: body.count }, body.shrink_meant);
    if (refusal !== undefined) return { kind: "shrunk", reason: refusal };
    if (added.some(({ range }) => typeof this.#ranges.read(range) === "string"))
      return { kind: "mismatch", reason: "the change adds something that is not a CIDR range" };
    if (have.count + added.length - removed.length !== body.count)
      return { kind: "mismatch", reason: "the count after the change differs from central's" };
    const digest = changedSetDigest(have.digest, added, removed);
    if (digest !== body.digest)
      return { kind: "mismatch", reason: "the digest after the change differs from central's" };
    const list = found?.list ?? this.#lists.take();
    const fits = this.#db.transaction(() => {
      if (!this.#lists.change(list, added, removed))
        throw new AccelError(
          "SET_MISMATCH",
          "the change does not fit the elements that this agent has",
        );
      this.#put.run(host, kind, to, body.count, digest, list);
    });
    try {
      fits.immediate();
      this.#onDelta({ before: have.digest, after: digest, added, removed });
      return { kind: "applied", reason: "" };
    } catch (error) {
      if (error instanceof AccelError) return { kind: "mismatch", reason: error.message };
      throw error;
    } finally {
      if (found === undefined) this.#lists.release(list);
    }
  }

  /**
   * Replaces a set: the new one is written beside the old one, which stays in force until the new one is
   * complete. Throws SET_MISMATCH if the count or digest of what arrived differs from what was promised, and
   * what `elements` throws; nothing has changed then, nor when the process is killed meanwhile.
   */
  async replace(
    want: SetVersion,
    elements: AsyncIterable<readonly SetElement[]>,
    signal: AbortSignal,
  ): Promise<void> {
    await this.sweep(signal);
    const list = this.#lists.take();
    try {
      const before = this.#find.get(want.host, want.kind)?.list ?? list;
      const isWhole = await this.#lists.fill(list, before, want, elements, signal);
      signal.throwIfAborted();
      if (!isWhole)
        throw new AccelError(
          "SET_MISMATCH",
          `the whole ${want.kind} set of ${want.host} has another count or digest than version ${want.version} should, or something that is not a CIDR range`,
        );
      this.#put.run(want.host, want.kind, want.version, want.count, want.digest, list);
    } finally {
      this.#lists.release(list);
    }
    await this.sweep(signal);
  }

  /** Forgets the sets of hosts that are no longer served; their elements go with the next `sweep`. */
  keepOnly(hosts: ReadonlySet<string>): void {
    const gone = this.list().filter(({ host }) => !hosts.has(host));
    this.#db
      .transaction(() => {
        for (const { host, kind } of gone) this.#drop.run(host, kind);
      })
      .immediate();
  }

  /**
   * Deletes elements that belong to no set or were given up half-way, a few at a time. Ends early on
   * `signal`.
   */
  async sweep(signal: AbortSignal): Promise<void> {
    await this.#lists.sweep(signal);
  }
}

// The elements of bot sets in agent.db lie in numbered lists: a set names its list in its row, and lists that
// no set names are swept.
//
// A whole set of a million elements is a list that is filled in many small transactions, with turns of the
// event loop between them. They are not synced; the commit of the set's row, which follows them in the same
// WAL, is.

/** The most elements of one transaction, which takes some 5 ms. */
const elementsPerTurn = 1_000;

class SetLists {
  readonly #db: Sqlite;
  readonly #add: Statement<[list: number, bot: string, range: string]>;
  readonly #copy: Statement<
    [list: number, bot: string, range: string, before: number, bot: string, range: string]
  >;
  readonly #remove: Statement<[list: number, bot: string, range: string]>;
  readonly #next: Statement<[after: number], { readonly list: number | null }>;
  readonly #isNamed: Statement<[list: number]>;
  readonly #drop: Statement<[list: number, again: number, limit: number]>;
  readonly #ranges = new RangeReader();
  /** Lists that are being filled: no set names them yet, and they must not be swept. */
  readonly #taken = new Set<number>();
  #last: number;

  constructor(db: Sqlite) {
    this.#db = db;
    this.#add = db.prepare(
      "INSERT OR IGNORE INTO bot_range (list, bot, range, added_at) VALUES (?, ?, ?, unixepoch())",
    );
    this.#copy = db.prepare(
      `INSERT OR IGNORE INTO bot_range (list, bot, range, added_at) VALUES (?, ?, ?,
       coalesce((SELECT added_at FROM bot_range WHERE list = ? AND bot = ? AND range = ?), unixepoch()))`,
    );
    this.#remove = db.prepare("DELETE FROM bot_range WHERE list = ? AND bot = ? AND range = ?");
    this.#next = db.prepare("SELECT min(list) AS list FROM bot_range WHERE list > ?");
    this.#isNamed = db.prepare("SELECT 1 FROM bot_set WHERE list = ?");
    this.#drop = db.prepare(
      "DELETE FROM bot_range WHERE list = ? AND (bot, range) IN (SELECT bot, range FROM bot_range WHERE list = ? LIMIT ?)",
    );
    const { last } = db
      .prepare<[], { readonly last: number }>(
        "SELECT max(coalesce((SELECT max(list) FROM bot_set), 0), coalesce((SELECT max(list) FROM bot_range), 0)) AS last",
      )
      .get() ?? { last: 0 };
    this.#last = last;
  }

  /** Returns a number that no list has; the list is kept from the sweep until it is released. */
  take(): number {
    this.#taken.add(++this.#last);
    return this.#last;
  }

  release(list: number): void {
    this.#taken.delete(list);
  }

  /**
   * Changes a list in the caller's transaction. Returns false, and the transaction must be rolled back, if an
   * element to be added was there already or one to be removed was not.
   */
  change(list: number, added: readonly SetElement[], removed: readonly SetElement[]): boolean {
    return (
      removed.every(({ bot, range }) => this.#remove.run(list, bot, range).changes === 1) &&
      added.every(({ bot, range }) => this.#add.run(list, bot, range).changes === 1)
    );
  }

  /**
   * Fills a list and returns whether it is what was promised. Elements that are in the list `before` keep the
   * time at which they were added.
   */
  async fill(
    list: number,
    before: number,
    want: { readonly count: number; readonly digest: string },
    elements: AsyncIterable<readonly SetElement[]>,
    signal: AbortSignal,
  ): Promise<boolean> {
    let [count, digest] = [0, emptySetDigest];
    for await (const batch of elements) {
      for (let at = 0; at < batch.length; at += elementsPerTurn) {
        signal.throwIfAborted();
        const part = batch.slice(at, at + elementsPerTurn);
        count += part.length;
        if (count > want.count || !this.#addPart(list, before, part)) return false;
        digest = changedSetDigest(digest, part, []);
        await setImmediate();
      }
    }
    return count === want.count && digest === want.digest;
  }

  async sweep(signal: AbortSignal): Promise<void> {
    for (let at = 0; ;) {
      const list = this.#next.get(at)?.list ?? undefined;
      if (list === undefined) return;
      at = list;
      if (this.#taken.has(list) || this.#isNamed.get(list) !== undefined) continue;
      let dropped = 0;
      do {
        if (signal.aborted) return;
        dropped = this.#unsynced(() => this.#drop.run(list, list, elementsPerTurn).changes);
        await setImmediate();
      } while (dropped > 0);
    }
  }

  #addPart(list: number, before: number, part: readonly SetElement[]): boolean {
    return this.#unsynced(() =>
      part.every(
        ({ bot, range }) =>
          typeof this.#ranges.read(range) !== "string" &&
          this.#copy.run(list, bot, range, before, bot, range).changes === 1,
      ),
    );
  }

  #unsynced<T>(action: () => T): T {
    this.#db.pragma("synchronous = normal");
    try {
      return this.#db.transaction(action).immediate();
    } finally {
      this.#db.pragma("synchronous = full");
    }
  }
}
