// Raises the health warning `origin_full` for domains whose backend had no place for a request. It reads the workers' own metrics, so that both say the same.

import type { Health } from "../../base/health.ts";
import type { MetricsData } from "../../base/metrics.ts";

/** The most domains that are warned of at one time, for reports carry all warnings. */
export const fullWarnedMax = 100;
/** The time without such a request after which a warning is settled. */
export const settledMs = 600_000;

const code = "origin_full";
const hint =
  "The backend answers more slowly than it is asked. Other sites are not concerned. `accel_agent_origin_duration_seconds` says how long it takes; if it could answer more at a time, raise accelerator.origin_requests_max.";

type Known = { refused: number; lastMs: number };

export class OriginWatch {
  readonly #health: Health;
  readonly #known = new Map<string, Known>();
  readonly #warned = new Set<string>();

  constructor(health: Health) {
    this.#health = health;
  }

  /** Takes the counts and warns. `nowMs` is of a monotonic clock. A domain that is no longer served is forgotten. */
  take(parts: readonly MetricsData[], domains: readonly string[], nowMs: number): void {
    const counts = refusedIn(parts);
    const served = new Set(domains);
    for (const domain of this.#known.keys()) if (!served.has(domain)) this.#forget(domain);
    for (const domain of served) {
      const refused = counts.get(domain) ?? 0;
      const known = this.#known.get(domain) ?? { refused: 0, lastMs: -Infinity };
      this.#known.set(domain, known);
      const more = refused - known.refused;
      known.refused = refused;
      if (more > 0) {
        known.lastMs = nowMs;
        this.#warn(domain, more);
      } else if (nowMs - known.lastMs >= settledMs) this.#settle(domain);
    }
  }

  #warn(domain: string, refused: number): void {
    if (!this.#warned.has(domain) && this.#warned.size >= fullWarnedMax) return;
    this.#warned.add(domain);
    const text = `the backend of ${domain} had no place for ${refused} requests since the last look`;
    this.#health.raise(code, "warning", text, hint, domain);
  }

  #settle(domain: string): void {
    if (this.#warned.delete(domain)) this.#health.settle(code, domain);
  }

  #forget(domain: string): void {
    this.#known.delete(domain);
    this.#settle(domain);
  }
}

/** Sums what was answered 503, by domain. */
function refusedIn(parts: readonly MetricsData[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const metric of parts.flat()) {
    if (metric.name !== "accel_agent_origin_full_total") continue;
    for (const { labels, value } of metric.values) {
      const said: Readonly<Partial<Record<string, string | number>>> = labels;
      if (said["outcome"] !== "refused" && said["outcome"] !== "late") continue;
      const domain = String(said["domain"] ?? "");
      counts.set(domain, (counts.get(domain) ?? 0) + value);
    }
  }
  return counts;
}
