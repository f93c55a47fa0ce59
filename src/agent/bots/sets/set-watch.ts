// Shows in health, metrics and status which bot sets are behind central's and why. A set that is behind is
// still whole and in force.

import type { Health } from "../../../base/health.ts";
import type { Log } from "../../../base/log.ts";
import { createMetrics, type Registry } from "../../../base/metrics.ts";
import type { SetName, SetVersion } from "../tables/table-messages.ts";

/**
 * Why a set is behind. `mismatch`: what arrived does not fit. `shrunk`: it was refused, as an accident is
 * more likely. `unavailable`: the whole set cannot be fetched, or arrives wrong.
 */
export type BehindReason = "mismatch" | "shrunk" | "unavailable";

type Behind = SetName & {
  readonly why: BehindReason;
  readonly reason: string;
  readonly since: string;
};

export const setMetrics = {
  accel_agent_set_faults_total: {
    kind: "counter",
    help: "How often news of a bot set from central could not be applied as it came.",
    labels: ["reason"],
  },
  accel_agent_set_fetches_total: {
    kind: "counter",
    help: "How often a bot set was fetched as a whole.",
  },
  accel_agent_sets_behind: {
    kind: "gauge",
    help: "Bot sets whose version in force is older than central's.",
  },
} as const;

const hints: Readonly<Record<BehindReason, string>> = {
  mismatch: "The whole set is being fetched.",
  shrunk:
    "If central's set is correct, import it there with `accel-central bots import … --replace`, which says that the change is intended. Otherwise restore central.",
  unavailable: "The agent tries it again every minute. See its log and central's.",
};

export class SetWatch {
  readonly #health: Health;
  readonly #log: Log;
  readonly #now: () => Date;
  readonly #metrics;
  readonly #behind = new Map<string, Behind>();

  constructor(options: {
    readonly registry: Registry;
    readonly health: Health;
    readonly log: Log;
    readonly now: () => Date;
  }) {
    this.#health = options.health;
    this.#log = options.log;
    this.#now = options.now;
    this.#metrics = createMetrics(setMetrics, options.registry);
  }

  /** Notes that a set is behind; the last good one stays in force. */
  behind({ host, kind }: SetName, why: BehindReason, reason: string): void {
    const key = `${kind}/${host}`;
    const since = this.#behind.get(key)?.since ?? this.#now().toISOString();
    this.#behind.set(key, { host, kind, why, reason, since });
    this.#metrics.accel_agent_set_faults_total.inc({ reason: why });
    this.#metrics.accel_agent_sets_behind.set(this.#behind.size);
    // A mismatch is no warning yet, for the whole set usually mends it.
    if (why === "mismatch") return this.#log.info({ host, kind }, `bot set: ${reason}`);
    const text = `the ${kind} set of ${host} stays as it was: ${reason}`;
    this.#health.raise("bot_set_behind", "warning", text, hints[why], key);
    this.#log.warn({ host, kind, why }, text);
  }

  /** Notes that a set is as central has it. */
  current({ host, kind }: SetName): void {
    const key = `${kind}/${host}`;
    if (!this.#behind.delete(key)) return;
    this.#metrics.accel_agent_sets_behind.set(this.#behind.size);
    this.#health.settle("bot_set_behind", key);
    this.#log.info({ host, kind }, "the bot set is the same as central's again");
  }

  fetched({ host, kind }: SetName): void {
    this.#metrics.accel_agent_set_fetches_total.inc();
    this.#log.info({ host, kind }, "bot set fetched whole");
  }

  behindNow(): readonly SetName[] {
    return [...this.#behind.values()].map(({ host, kind }) => ({ host, kind }));
  }

  /** Forgets the sets whose host is no longer linked. */
  keepOnly(hosts: ReadonlySet<string>): void {
    for (const name of this.behindNow()) if (!hosts.has(name.host)) this.current(name);
  }

  /** Returns the sets, each with what keeps it from being the newest. */
  describe(sets: readonly SetVersion[]): readonly (SetVersion & {
    readonly behind: Omit<Behind, "host" | "kind"> | null;
  })[] {
    return sets.map((set) => {
      const behind = this.#behind.get(`${set.kind}/${set.host}`);
      if (behind === undefined) return { ...set, behind: null };
      const { why, reason, since } = behind;
      return { ...set, behind: { why, reason, since } };
    });
  }
}
