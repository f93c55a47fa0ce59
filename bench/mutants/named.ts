// Mutants that once survived, each a hole that was closed: their deaths stay shown. A place is found by its text, not by where it stands.

import type { Mutant } from "./mutant.ts";

export type Named = {
  /** What goes wrong, in words. */
  readonly title: string;
  readonly file: string;
  /** Stands once in the file. */
  readonly from: string;
  readonly to: string;
};

/** Throws where the text no longer stands there once: the mutant is to be planted anew where the code went. */
export function namedMutant({ title, file, from, to }: Named, text: string): Mutant {
  const start = text.indexOf(from);
  if (start < 0 || text.indexOf(from, start + 1) >= 0)
    throw new Error(
      `${file}: "${from}" stands there ${start < 0 ? "no longer" : "more than once"}`,
    );
  const lineNo = text.slice(0, start).split("\n").length;
  const line = (text.split("\n")[lineNo - 1] ?? "").trim();
  return {
    name: { file, within: title, line, change: `${from} → ${to}` },
    operator: "named",
    edit: { start, end: start + from.length, replacement: to },
    lineNo,
    isTyped: false,
  };
}

export const named: readonly Named[] = [
  {
    title: "the books of the journal without a transaction",
    file: "src/agent/link/ledger.ts",
    from: "return this.#commit(action);",
    to: "return action();",
  },
  {
    title: "a clear that failed counts as applied",
    file: "src/agent/link/ledger.ts",
    from: 'if (isClear && receipt.phase === "applied" && seq',
    to: "if (isClear && seq",
  },
  {
    title: "a late `gone` of an old history is told for an entry of the next",
    file: "src/agent/link/entry-runner.ts",
    from: "if (gone === undefined || lanes !== this.#lanes) return;",
    to: "if (gone === undefined) return;",
  },
  {
    title: "a clear is given up for the next one",
    file: "src/wire/journal.ts",
    from: 'lane: () => "clears",\n    isState: false,',
    to: 'lane: () => "clears",\n    isState: true,',
  },
  {
    title: "an import is given up for the next one",
    file: "src/wire/journal.ts",
    from: "lane: ({ domain }) => `import:${domain}`,\n    isState: false,",
    to: "lane: ({ domain }) => `import:${domain}`,\n    isState: true,",
  },
  {
    title: "the bits do not grow for the id behind their end",
    file: "src/agent/cache/index/entry-bits.ts",
    from: "return word < this.#words.length;",
    to: "return word <= this.#words.length;",
  },
  {
    title: "the proof is inverted for who asks beside the first",
    file: "src/agent/cache/clearing/clears.ts",
    from: ": { verified: row.verified === 1, left: row.left };",
    to: ": { verified: row.verified !== 1, left: row.left };",
  },
  {
    title: "the stored proof is inverted after a restart",
    file: "src/agent/cache/clearing/clears.ts",
    from: "verified: row.verified === null ? null : row.verified === 1,",
    to: "verified: row.verified === null ? null : row.verified !== 1,",
  },
  {
    title: "the first marks of invalidations are the counter of lookups",
    file: "src/agent/cache/index/shared-header.ts",
    from: "const invalidationsAt = lookupsAt + 2;",
    to: "const invalidationsAt = lookupsAt;",
  },
  {
    title: "the last mark of keys says that a domain is unsure",
    file: "src/agent/cache/index/shared-header.ts",
    from: "const unsureAt = keyMarksAt + keyMarks;",
    to: "const unsureAt = keyMarksAt + keyMarks - 2;",
  },
  {
    title: "the last marks of invalidations count bytes",
    file: "src/agent/cache/index/shared-header.ts",
    from: "const storedAt = (invalidationsAt + keyMarks) / 2;",
    to: "const storedAt = (invalidationsAt + keyMarks) / 2 - 1;",
  },
  {
    title: "a pattern that cannot be evaluated matches nothing",
    file: "src/agent/cache/index/guard.ts",
    from: "catch {\n      return true;",
    to: "catch {\n      return false;",
  },
  {
    title: "patterns are evaluated without a bound",
    file: "src/agent/cache/index/guard.ts",
    from: "++evaluations > evaluationsMax",
    to: "++evaluations < 0",
  },
  {
    title: "records are not synced",
    file: "src/agent/requests/spool/spool-files.ts",
    from: "datasync: fdatasyncSync,",
    to: "datasync: () => undefined,",
  },
  {
    title: "names are not synced",
    file: "src/agent/requests/spool/spool-files.ts",
    from: "fsyncSync(directory);",
    to: ";",
  },
  {
    title: "each read leaves its file open",
    file: "src/agent/requests/spool/spool-files.ts",
    from: "bytes.slice(0, read);\n    } finally {\n      closeSync(file);",
    to: "bytes.slice(0, read);\n    } finally {\n      ;",
  },
  {
    title: "the spool is not looked after while nobody asks",
    file: "src/agent/requests/spool/spool-thread.ts",
    from: "this.#spool.tick();",
    to: ";",
  },
  {
    title: "a 502 of the origin is none of its errors",
    file: "src/core/http/http-reuse.ts",
    from: "status === 500 || status === 502 ||",
    to: "status === 500 ||",
  },
  {
    title: "a revoked token stays proven",
    file: "src/central/api/http/authenticate.ts",
    from: "proven.remove(digest);",
    to: ";",
  },
  {
    title: "who was right at one address is known at every one",
    file: "src/central/api/http/authenticate.ts",
    from: "${addressGroups(address)[0]} ${given.username}",
    to: "${given.username}",
  },
  {
    title: "the first wrong password after a right one does not count",
    file: "src/central/api/http/authenticate.ts",
    from: "if (!isTaken) wrong.take();",
    to: ";",
  },
  {
    title: "how long something took is unbounded",
    file: "src/central/store/journal/receipts.ts",
    from: "Math.min(took_ms, tookMsMax)",
    to: "took_ms",
  },
  {
    title: "recoveries that wait are unbounded",
    file: "src/central/store/people/recovery.ts",
    from: 'if ((await rowCount(tx.selectFrom("recovery_requests"))) >= waitingMax) return "too-many";',
    to: ";",
  },
  {
    title: "links of recoveries are unbounded",
    file: "src/central/store/people/recovery.ts",
    from: "return own >= linksPerUser || (await rowCount(good)) >= linksInAll;",
    to: "return own < 0;",
  },
];
