// The bot sets in agent.db: complete or not applied. A delta is applied only to the version it was made for and only when count and digest
// come out as central says; anything else is a mismatch, and the whole set is fetched while the last good one stays in force.

import { AccelError } from "../../core/faults.ts";
import { parseRange } from "../../core/ip.ts";
import { buildRangeTable, type RangeTable } from "../../core/range-table.ts";
import {
  changedSetDigest,
  elementKey,
  emptySetDigest,
  type SetElement,
} from "../../core/set-digest.ts";
import type { Sqlite, Statement } from "../../base/sqlite.ts";
import type { BotSet, JournalBody } from "../../wire/journal.ts";

export type SetVersion = {
  readonly host: string;
  readonly kind: BotSet;
  readonly version: number;
  readonly count: number;
  readonly digest: string;
};

/**
 * `applied`: durable now. `known`: it was before. `mismatch`: fetch the whole set. `shrunk`: refused, the set would lose more than half
 * of at least a hundred elements and central did not say that this is meant.
 */
export type DeltaOutcome = {
  readonly kind: "applied" | "known" | "mismatch" | "shrunk";
  readonly reason: string;
};

const shrinkGuardedCount = 100;

/** Stored, it would make every table of the set fail from then on. */
const isRange = ({ range }: SetElement): boolean => parseRange(range).ok;

export class SetStore {
  readonly #db: Sqlite;
  readonly #find: Statement<[host: string, kind: string], SetVersion>;
  readonly #all: Statement<[], SetVersion>;
  readonly #elements: Statement<[host: string, kind: string], SetElement>;
  readonly #put: Statement<
    [host: string, kind: string, version: number, count: number, digest: string]
  >;
  readonly #add: Statement<[host: string, kind: string, bot: string, range: string]>;
  readonly #remove: Statement<[host: string, kind: string, bot: string, range: string]>;
  readonly #drop: readonly Statement<[host: string, kind: string]>[];
  /** Compiled tables of the versions in the database, by host and kind. */
  readonly #tables = new Map<
    string,
    { readonly version: number; readonly digest: string; readonly table: RangeTable }
  >();

  constructor(db: Sqlite) {
    this.#db = db;
    this.#find = db.prepare(
      "SELECT host, kind, version, count, digest FROM bot_set WHERE host = ? AND kind = ?",
    );
    this.#all = db.prepare(
      "SELECT host, kind, version, count, digest FROM bot_set ORDER BY host, kind",
    );
    this.#elements = db.prepare("SELECT bot, range FROM bot_element WHERE host = ? AND kind = ?");
    this.#put = db.prepare(
      "INSERT OR REPLACE INTO bot_set (host, kind, version, count, digest) VALUES (?, ?, ?, ?, ?)",
    );
    this.#add = db.prepare(
      "INSERT OR IGNORE INTO bot_element (host, kind, bot, range) VALUES (?, ?, ?, ?)",
    );
    this.#remove = db.prepare(
      "DELETE FROM bot_element WHERE host = ? AND kind = ? AND bot = ? AND range = ?",
    );
    this.#drop = ["bot_element", "bot_set"].map((table) =>
      db.prepare(`DELETE FROM ${table} WHERE host = ? AND kind = ?`),
    );
  }

  list(): readonly SetVersion[] {
    return this.#all.all();
  }

  /** One immediate transaction, synchronous = FULL. Idempotent. */
  applyDelta(body: JournalBody<"bots.changed">): DeltaOutcome {
    const { domain: host, set: kind, from_version: from, to_version: to } = body;
    const have = this.#find.get(host, kind) ?? {
      host,
      kind,
      version: 0,
      count: 0,
      digest: emptySetDigest,
    };
    if (have.version === to && have.digest === body.digest) return { kind: "known", reason: "" };
    if (have.version !== from)
      return {
        kind: "mismatch",
        reason: `the change leads from version ${from}, this agent has ${have.version}`,
      };
    if (have.count >= shrinkGuardedCount && body.count * 2 < have.count && !body.shrink_meant) {
      return {
        kind: "shrunk",
        reason: `the set would shrink from ${have.count} to ${body.count} elements and central did not say that this is meant`,
      };
    }
    if (!body.added.every(isRange))
      return { kind: "mismatch", reason: "the change adds something that is no CIDR range" };
    const digest = changedSetDigest(have.digest, body.added, body.removed);
    if (digest !== body.digest)
      return { kind: "mismatch", reason: "the digest after the change differs from central's" };
    const fits = this.#db.transaction(() => {
      for (const { bot, range } of body.removed)
        if (this.#remove.run(host, kind, bot, range).changes !== 1) return this.#undo();
      for (const { bot, range } of body.added)
        if (this.#add.run(host, kind, bot, range).changes !== 1) return this.#undo();
      if (have.count + body.added.length - body.removed.length !== body.count) return this.#undo();
      this.#put.run(host, kind, to, body.count, digest);
      return true;
    });
    try {
      fits.immediate();
      return { kind: "applied", reason: "" };
    } catch (error) {
      if (error instanceof AccelError) return { kind: "mismatch", reason: error.message };
      throw error;
    }
  }

  /** A throw is what rolls a transaction back. */
  #undo(): never {
    throw new AccelError(
      "SET_MISMATCH",
      "the change does not fit the elements that this agent has",
    );
  }

  /** The whole set. Throws SET_MISMATCH where count or digest of what arrived differ from what was promised; nothing changes then. */
  replace(want: SetVersion, elements: readonly SetElement[]): void {
    const distinct = new Map(elements.map((element) => [elementKey(element), element]));
    const digest = changedSetDigest(emptySetDigest, distinct.values(), []);
    if (
      distinct.size !== want.count ||
      distinct.size !== elements.length ||
      digest !== want.digest ||
      !elements.every(isRange)
    ) {
      throw new AccelError(
        "SET_MISMATCH",
        `the whole ${want.kind} set of ${want.host} has another count or digest than version ${want.version} should, or something that is no CIDR range`,
      );
    }
    this.#db
      .transaction(() => {
        for (const drop of this.#drop) drop.run(want.host, want.kind);
        for (const { bot, range } of elements) this.#add.run(want.host, want.kind, bot, range);
        this.#put.run(want.host, want.kind, want.version, want.count, want.digest);
      })
      .immediate();
  }

  /** Forgets the sets of hosts that are no longer served. */
  keepOnly(hosts: ReadonlySet<string>): void {
    const gone = this.list().filter(({ host }) => !hosts.has(host));
    this.#db
      .transaction(() => {
        for (const { host, kind } of gone) for (const drop of this.#drop) drop.run(host, kind);
      })
      .immediate();
    for (const { host, kind } of gone) this.#tables.delete(`${kind}/${host}`);
  }

  /** Compiled once per version. */
  table(host: string, kind: BotSet): RangeTable | undefined {
    const have = this.#find.get(host, kind);
    if (have === undefined) return undefined;
    const key = `${kind}/${host}`;
    const made = this.#tables.get(key);
    if (made?.version === have.version && made.digest === have.digest) return made.table;
    const table = buildRangeTable(this.#elements.iterate(host, kind));
    this.#tables.set(key, { version: have.version, digest: have.digest, table });
    return table;
  }
}
