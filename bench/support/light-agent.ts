// An agent without visitors: the real link to central, the real set store and the real steering of sets, over a database in memory. A hundred of them
// fit into one process.

import { SetStore } from "../../src/agent/bots/sets/set-store.ts";
import { SetWatch } from "../../src/agent/bots/sets/set-watch.ts";
import { BotSetContents } from "../../src/agent/link/bot-set-content.ts";
import { Link } from "../../src/agent/link/link.ts";
import { SetChanges } from "../../src/agent/steering/set-changes.ts";
import type { BotSet } from "../../src/wire/journal.ts";
import type { Site } from "./fleet-seed.ts";
import { lightLink } from "./light-link.ts";

export type LightAgent = AsyncDisposable & {
  set(host: string, kind: BotSet): { readonly count: number; readonly digest: string } | undefined;
};

export type LightAgentOptions = Site & {
  readonly centralUrl: string;
  /** For sets on their way. */
  readonly dir: string;
};

export function startLightAgent({ centralUrl, dir, ...site }: LightAgentOptions): LightAgent {
  const stack = new AsyncDisposableStack();
  const stop = new AbortController();
  const link = lightLink(centralUrl, site, stop.signal);
  const db = stack.use(link.db);
  const client = stack.use(link.client);
  const sets = new SetStore(db.sqlite);
  const contents = new BotSetContents(client, dir, link.now);
  const changes = new SetChanges({
    sets,
    watch: new SetWatch(link),
    serving: { publishSets: async () => undefined },
    client,
    contents,
  });
  stack.use(
    new Link({
      ...link,
      appliers: {
        ...link.appliers,
        "bots.changed": async ({ body }, signal) => {
          const outcome = await changes.change(body, signal);
          return outcome.kind === "refused"
            ? { phase: "refused", detail: { reason: outcome.reason } }
            : { phase: "applied", detail: {} };
        },
      },
      applySnapshot: async ({ bots }, signal) => {
        for (const state of bots) await changes.take(state, signal);
        return { cleared: [] };
      },
    }),
  );
  stack.defer(() => stop.abort());
  return {
    set: (host, kind) => sets.list().find((set) => set.host === host && set.kind === kind),
    [Symbol.asyncDispose]: async () => stack.disposeAsync(),
  };
}
