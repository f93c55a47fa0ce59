// Bugs of activation that its proofs must find; each a line of the sources that is left out or comes too late.

import type { Patch } from "./built-tree.ts";

export type Bug = { readonly name: string; readonly patch: Patch };

/** What a power loss shows. */
export const powerBugs: readonly Bug[] = [
  {
    name: "blobs get their names and nobody syncs the directories before the commit",
    patch: {
      file: "src/agent/viewset/blob-store.ts",
      from: "await inParallel(directories, syncsMax, syncDirectory, never);",
      to: "await inParallel(directories, syncsMax, async () => undefined, never);",
    },
  },
  {
    name: "a blob gets its name before its bytes are synced",
    patch: {
      file: "src/agent/viewset/blob-download.ts",
      from: /await file\.sync\(\);(\s+return "whole";)/,
      to: "$1",
    },
  },
  {
    name: "flipped before it is committed",
    patch: {
      file: "src/agent/accelerator/pool/workers.ts",
      from: /commit\?\.\(\);(\s+)this\.#words\.flip\(version\);/,
      to: "this.#words.flip(version);$1commit?.();",
    },
  },
  {
    name: "a commit of agent.db is not synced",
    patch: {
      file: "src/agent/link/agent-db.ts",
      from: 'openSqlite(path, { sync: "full" })',
      to: 'openSqlite(path, { sync: "normal" })',
    },
  },
  {
    name: "certificates are named in agent.db before their file is synced",
    patch: {
      file: "src/agent/vault/certificate-files.ts",
      from: "await writeDurable(this.#path(sha256), bytes);",
      to: 'await (await import("node:fs/promises")).writeFile(this.#path(sha256), bytes);',
    },
  },
];
