// Where an instance of the agent lives: its id in agent.db is bound to the machine and to the file's inode. On a cloned disk and in a copied
// state directory (a second agent on this host, a backup put back, a move to another disk) the id is made anew and the history is forgotten, so
// that the clone takes its own snapshot and sends its own receipts.
//
//   meta: instance_id, machine, file    the id, and where it lived last
//         index_moved                   why what the copied index holds is not trusted, until another index is in use

import { createHash, randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import type { Sqlite } from "../../base/sqlite.ts";
import type { Ledger } from "./ledger.ts";

/** The id, and what is told where it was made anew in a database that had one. */
export type BoundInstance = {
  readonly id: string;
  readonly moved: Moved | undefined;
};

export type Moved = {
  /** The id of the instance from which the file was copied. */
  readonly before: string;
  readonly reason: string;
};

/** The place where an instance lives. A part that the host does not tell is not compared. */
type Home = { readonly machine: string | undefined; readonly file: string };

/** What it means that a part of the home differs. */
const reasons: Readonly<Record<keyof Home, string>> = {
  machine:
    "the machine-id of this host is another than the one with which this state directory was used",
  file: "this state directory is a copy, for its agent.db is another file than the one that was used last",
};

/** Binds the instance to this machine and file. In a copied database it makes another id and forgets the journal's history. */
export function bindInstance(
  sqlite: Sqlite,
  ledger: Ledger,
  machine: string | undefined,
): BoundInstance {
  const read = sqlite.prepare<[string], { value: string }>("SELECT value FROM meta WHERE key = ?");
  const write = sqlite.prepare<[string, string]>(
    "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
  );
  const home: Home = { machine, file: inodeOf(sqlite) };
  return sqlite
    .transaction((): BoundInstance => {
      const known = read.get("instance_id")?.value;
      const differing = (["machine", "file"] as const).filter((part) => {
        const [before, now] = [read.get(part)?.value, home[part]];
        if (now !== undefined) write.run(part, now);
        return before !== undefined && now !== undefined && before !== now;
      });
      if (known !== undefined && differing.length === 0) return { id: known, moved: undefined };
      const id = randomBytes(16).toString("hex");
      write.run("instance_id", id);
      ledger.forget();
      if (known === undefined) return { id, moved: undefined };
      const reason = differing.map((part) => reasons[part]).join(", and ");
      write.run("index_moved", `${reason}; clears that were given here since then are not known`);
      return { id, moved: { before: known, reason } };
    })
    .immediate();
}

/**
 * Returns a digest of the machine id, for machine-id(5) asks not to show the id itself; undefined where the
 * host has none, as in many containers.
 */
export function machineDigest(path: string): string | undefined {
  let id: string;
  try {
    id = readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
  if (!/^[0-9a-f]{32}$/.test(id)) return undefined;
  return createHash("sha256").update(`accel-agent instance\n${id}`).digest("hex");
}

/**
 * Returns the inode of the file; a copy has another one. The device is left out, for its number may change
 * when the host starts. A database in memory has no file to copy.
 */
function inodeOf(sqlite: Sqlite): string {
  return sqlite.memory ? "memory" : String(statSync(sqlite.name, { bigint: true }).ino);
}
