// What outlives a crash of the agent around steering, and how it is told in the steps of a rig.

import { openAgentDb, type AgentDb } from "../../../src/agent/link/agent-db.ts";
import type { Json } from "../../../src/core/journal/canonical-json.ts";
import { digestOf } from "./fake-sets.ts";

export type Cleared = {
  readonly clearNo: number;
  readonly matched: number;
  readonly widened: boolean;
  readonly invisibleMs: number;
};

export class Crash extends Error {}

export const epoch = "0123456789abcdef";

export class Disk implements Disposable {
  readonly db: AgentDb = openAgentDb(":memory:", "/nowhere");
  /** `host of domain` that has something cached. */
  readonly cached = new Set<string>();
  readonly clears = new Map<string, Cleared>();

  constructor() {
    this.db.ledger.restart({
      epoch,
      seq: 0,
      chain: digestOf("chain"),
      receipt: undefined,
      imports: [],
    });
  }

  /** All that a crash leaves. */
  content(): unknown {
    const all = (sql: string): unknown[] => this.db.sqlite.prepare(sql).all();
    return {
      documents: all("SELECT key, value FROM document ORDER BY key"),
      sets: all("SELECT host, kind, version, count, digest FROM bot_set ORDER BY host, kind"),
      elements: all(
        "SELECT host, kind, bot, range FROM bot_element ORDER BY host, kind, bot, range",
      ),
      cached: [...this.cached].sort(),
      clears: Object.fromEntries(this.clears),
    };
  }

  [Symbol.dispose](): void {
    this.db[Symbol.dispose]();
  }
}

/** The book of a domain's releases is written with the version in force, or by itself. */
export function namesOf(changes: Readonly<Record<string, Json | null>>): string {
  const isBook = (key: string): boolean => /^(?:releases|quarantine|pin|wish|prepared):/.test(key);
  const names = Object.entries(changes)
    .filter(([key]) => !isBook(key))
    .map(([key, value]) => (value === null ? `${key}=null` : key));
  const [book] = Object.keys(changes).filter(isBook);
  return names.length > 0 || book === undefined ? names.join(" ") : book.replace(/^[a-z]+/, "book");
}
