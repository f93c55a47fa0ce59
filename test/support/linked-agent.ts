// An agent without visitors, by the real link: it comes back when its channel ends, takes every entry for applied, and answers what a clear would hit.

import { lightLink } from "../../bench/support/light-link.ts";
import { Link } from "../../src/agent/link/link.ts";
import type { JournalKind } from "../../src/wire/journal.ts";
import { appliersOf } from "./link-rig.ts";

export type LinkedAgent = AsyncDisposable & {
  /** The kinds of entries that it applied, in their order. */
  readonly applied: readonly string[];
  readonly snapshots: () => number;
  /** Whether it was told that its site is gone. */
  readonly isDeleted: () => boolean;
};

export type AgentSite = { readonly name16: string; readonly secret16: string };

/** `proves`: its receipts wait for that. */
export function startLinkedAgent(
  centralUrl: string,
  site: AgentSite,
  matched = 7,
  proves: Promise<void> = Promise.resolve(),
): LinkedAgent {
  const stack = new AsyncDisposableStack();
  const stop = new AbortController();
  const applied: JournalKind[] = [];
  let [snapshots, isDeleted] = [0, false];
  const link = lightLink(centralUrl, site, stop.signal);
  stack.use(link.db);
  stack.use(link.client);
  stack.use(
    new Link({
      ...link,
      appliers: appliersOf(async ({ kind }) => {
        applied.push(kind);
        await proves;
        return { phase: "applied", detail: { matched, widened: false, invisible_ms: 1 } };
      }),
      applySnapshot: async () => {
        snapshots++;
        return { cleared: [] };
      },
      siteDeleted: async () => {
        isDeleted = true;
      },
      answerDryRun: async () => ({ matched, over_budget: false, samples: [] }),
    }),
  );
  stack.defer(() => stop.abort());
  return {
    applied,
    snapshots: () => snapshots,
    isDeleted: () => isDeleted,
    [Symbol.asyncDispose]: async () => stack.disposeAsync(),
  };
}
