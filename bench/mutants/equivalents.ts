// Mutants that no test can tell from the original, each with the reason. A reason is about what the program does, never that a test would be hard.

import type { MutantName } from "./mutant.ts";

export type Equivalent = MutantName & { readonly reason: string };

export const equivalents: readonly Equivalent[] = [
  {
    file: "src/agent/accelerator/accelerator-thread.ts",
    within: "runAccelerator.onTicketKeys",
    line: "listener.ticketKeysChanged();",
    change: "listener.ticketKeysChanged(); → nothing",
    reason:
      "Node asks for the keys at each handshake (ticket-keys.ts), and what is told here does nothing: it is for a Node that has lost that internal call.",
  },
  {
    file: "src/core/http/header-edits.ts",
    within: "withEdits",
    line: "if (said.length === 0 && remove.length === 0) return fields;",
    change: "said.length === 0 && remove.length === 0 → false",
    reason:
      "Where nothing is set or removed, what follows gives an equal list: only the time differs.",
  },
  {
    file: "src/agent/accelerator/origin/origin-pools.ts",
    within: "OriginPools.inOrderOfHealth.trouble",
    line: 'const isDown = this.#down.size > 0 && this.#down.has(checkKey(domain, url, backend) ?? "");',
    change: "this.#down.size > 0 → this.#down.size >= 0",
    reason:
      "An empty set has no key, whichever is asked for: only the time of making the key differs.",
  },
  {
    file: "src/agent/bots/unreviewed/crawlers.ts",
    within: "longestText",
    line: "if (/^[?*+]$/.test(found)) runs[runs.length - 1] = run.slice(0, -1);",
    change: "1 → 2",
    nth: 2,
    reason:
      "A pattern is tried wherever its text occurs, and a shorter text occurs wherever the longer one does: only the time differs.",
  },
  {
    file: "src/agent/bots/decisions/evidence.ts",
    within: "SetVerdicts.make",
    line: "const evidence = { holder, claimed: undefined, claimHasAddresses: false };",
    change: "false → true",
    reason:
      "A set that holds the address decides alone: what a claim has is asked only where no set does.",
  },
  {
    file: "src/agent/cache/clearing/deletions.ts",
    within: "Deletions.step",
    line: "const isFirst = deletion.at === 0 && deletion.ids.length >= manyIds;",
    change: "0 → 1",
    reason:
      "Emptying the text index at once is a short way to where the deletion of its rows leads anyhow: only the time differs.",
  },
  {
    file: "src/agent/cache/worker/worker-cache.ts",
    within: "WorkerCache.open",
    line: "const body = await this.#bodies.read(id, row, id <= (this.#current?.view.suspectTo ?? 0));",
    change: "0 → 1",
    reason:
      "The number stands in for a view that is not there, and without one nothing is servable: the method has returned before.",
  },
  {
    file: "src/agent/link/contact.ts",
    within: "runChannelContact",
    line: "await Promise.all(side);",
    change: "await Promise.all(side); → void Promise.all(side);",
    reason:
      "Both loops end by the signal that the line before has aborted, within the same turn, and send and tell nothing from then on: whoever does not wait for them meets the same.",
  },
  {
    file: "src/agent/requests/spool/record-room.ts",
    within: "RecordRoom.outstandingMax",
    line: "const records = Math.max(0, bytesMax - this.#usedBytes()) / recordBytes;",
    change: "0 → 1",
    reason:
      "Room for one byte is room for no record: either way what is left is rounded down to none.",
  },
  {
    file: "src/agent/steering/vault-changes.ts",
    within: "VaultChanges.forget",
    line: "this.#locked = undefined;",
    change: "this.#locked = undefined; → nothing",
    reason:
      "It lets go of memory. Whatever reads the field after a site was forgotten, an installation or what is locked, has set it before.",
  },
  {
    file: "src/agent/viewset/site-walk.ts",
    within: "Walk.run.byText",
    line: "const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);",
    change: "a > b → a >= b",
    reason:
      "It differs for equal texts only: paths are not equal, and equal reasons are the same list in either order.",
  },
  {
    file: "src/base/settings-fields.ts",
    within: "size.read",
    line: 'return match === null ? undefined : Number(match[1]) * (sizeUnits[match[2] ?? ""] ?? 0);',
    change: "0 → 1",
    reason:
      "The expression matches no unit that is not in the table: the number stands there for the compiler alone.",
  },
  {
    file: "src/central/agents/log-archive.ts",
    within: "LogArchive.forget",
    line: "if (days.length > 0) this.#spans.clear(); // The day before one that is gone may be written again.",
    change: "days.length > 0 → days.length >= 0",
    reason:
      "Spans that are forgotten although no day is gone are read from their files again, and are what they were: only days before the newest are remembered.",
  },
  {
    file: "src/central/api/bot-marks.ts",
    within: "detachMany",
    line: "const isImported = (bot?.count ?? 0) > rangeElementsMax;",
    change: "0 → 1",
    reason:
      "The number stands in for a bot that is not there, and neither 0 nor 1 is more than 65,536 elements.",
  },
  {
    file: "src/central/store/content/blob-collection.ts",
    within: "(module)",
    line: "const overlapChars = 80;",
    change: "80 → 80000",
    reason:
      "What is kept of the piece before is searched once more: a digest that is found twice is the same digest.",
  },
  {
    file: "src/wire/customer/package.ts",
    within: "(module)",
    line: "size: 48_123_904,",
    change: "48_123_904 → 48123904000",
    reason: "The size of a wheel in an example of the documentation: any other size is as true.",
  },
  {
    file: "src/wire/customer/viewset.ts",
    within: "(module)",
    line: 'deployments: [{ deployment_site_id: 7, state: "applied" }],',
    change: "7 → 8",
    reason: "An id in an example of the documentation: any other id is as true.",
  },
  {
    file: "src/wire/customer/viewset.ts",
    within: "(module)",
    line: "files: 812,",
    change: "812 → 812000",
    reason: "The number of files in an example of the documentation: any other number is as true.",
  },
];
