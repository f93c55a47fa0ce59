// An agent without visitors: the real link to central, the real set store and the real steering of sets, over a database in memory. A hundred of them
// fit into one process.

import { SetStore } from "../../src/agent/bots/set-store.ts";
import { SetWatch } from "../../src/agent/bots/set-watch.ts";
import { openAgentDb } from "../../src/agent/link/agent-db.ts";
import { BotSetContents } from "../../src/agent/link/bot-set-content.ts";
import { CentralClient } from "../../src/agent/link/central-client.ts";
import { startLink } from "../../src/agent/link/link.ts";
import { SetChanges } from "../../src/agent/steering/set-changes.ts";
import { Health } from "../../src/base/health.ts";
import { silentLog } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import { parseName16, parseSecret16 } from "../../src/core/ids.ts";
import type { BotSet } from "../../src/wire/journal.ts";

export type LightAgent = AsyncDisposable & {
  set(host: string, kind: BotSet): { readonly count: number; readonly digest: string } | undefined;
};

export type LightAgentOptions = {
  readonly centralUrl: string;
  readonly name16: string;
  readonly secret16: string;
  /** For sets on their way. */
  readonly dir: string;
};

export function startLightAgent({ centralUrl, dir, ...keys }: LightAgentOptions): LightAgent {
  const stack = new AsyncDisposableStack();
  const name16 = parseName16(keys.name16);
  const secret16 = parseSecret16(keys.secret16);
  if (name16 === undefined || secret16 === undefined) throw new TypeError("no credentials");
  const stop = new AbortController();
  const now = (): Date => new Date();
  const common = { health: new Health(now), registry: new Registry(), log: silentLog(), now };
  const db = stack.use(openAgentDb(":memory:"));
  const client = stack.use(
    new CentralClient({ centralUrl, name16, secret16, caPem: undefined, stop: stop.signal }),
  );
  const sets = new SetStore(db.sqlite);
  const contents = new BotSetContents(client, dir, now);
  const changes = new SetChanges({
    sets,
    watch: new SetWatch(common),
    serving: { publishSets: async () => undefined },
    central: {
      botSet: async (host, kind, signal) => client.getBotSet(host, kind, signal),
      botSetContent: (blob, signal) => contents.read(blob, signal),
    },
  });
  const other = async () => ({ phase: "applied" as const, detail: {} });
  stack.use(
    startLink({
      centralUrl,
      name16,
      agentVersion: "0.0.0",
      bootId: name16,
      edge: null,
      client,
      db,
      appliers: {
        "viewset.activated": other,
        "viewset.import": other,
        "cache.clear": other,
        "policy.changed": other,
        "domains.changed": other,
        "key.changed": other,
        "certificate.changed": other,
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
      onHeadApplied: () => undefined,
      siteDeleted: async () => undefined,
      report: async () => ({
        spool: { accepted: 0, delivered: 0, spooled: 0, in_memory: 0, dropped: 0 },
        domains: [],
        warnings: [],
      }),
      counted: () => undefined,
      answerDryRun: async () => ({ matched: 0, over_budget: false, samples: [] }),
      random: Math.random,
      stop: stop.signal,
      ...common,
    }),
  );
  stack.defer(() => stop.abort());
  return {
    set: (host, kind) => sets.list().find((set) => set.host === host && set.kind === kind),
    [Symbol.asyncDispose]: async () => stack.disposeAsync(),
  };
}
