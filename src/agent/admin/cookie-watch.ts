// Raises the health warning `cookies_passed` for domains most of whose requests the cache could answer but
// for a cookie. It reads the workers' own metrics, so that both say the same.

import type { Health } from "../../base/health.ts";
import type { MetricsData } from "../../base/metrics.ts";
import {
  judgeCookies,
  type CookieCounts,
  type CookieWindow,
} from "../../core/http/cookie-share.ts";

/** The most domains that are warned of at one time, for reports carry all warnings. */
export const warnedMax = 100;

const code = "cookies_passed";
const hint =
  "Under a rule with `ttl_s` or `cookies.vary` a cookie of which the rule says nothing sends its request to the origin. Name cookies that change nothing in `cookies.ignore` of the rule, and those that choose a page in `cookies.vary`; `accel-agent why URL --cookie 'name=value'` says whether one counts.";

type Sample = {
  readonly labels: Readonly<Partial<Record<string, string | number>>>;
  readonly value: number;
};

export class CookieWatch {
  readonly #health: Health;
  readonly #windows = new Map<string, CookieWindow>();
  readonly #warned = new Set<string>();

  constructor(health: Health) {
    this.#health = health;
  }

  /**
   * Takes the counts and warns. `nowMs` is of a monotonic clock. A domain that is no longer served is
   * forgotten.
   */
  take(parts: readonly MetricsData[], domains: readonly string[], nowMs: number): void {
    const counts = countsOf(parts);
    const served = new Set(domains);
    for (const domain of this.#windows.keys()) if (!served.has(domain)) this.#forget(domain);
    for (const domain of served) {
      const { window, tell, isSettled } = judgeCookies(
        this.#windows.get(domain),
        counts.get(domain) ?? { requests: 0, passed: 0 },
        nowMs,
      );
      this.#windows.set(domain, window);
      if (tell !== undefined) this.#warn(domain, tell);
      else if (isSettled) this.#settle(domain);
    }
  }

  #warn(domain: string, { requests, passed }: CookieCounts): void {
    if (!this.#warned.has(domain) && this.#warned.size >= warnedMax) return;
    this.#warned.add(domain);
    const percent = Math.floor((100 * passed) / requests);
    const text = `${percent} % of the requests to ${domain} (${passed} of ${requests} in the last minutes) are passed to its origin because of their cookies`;
    this.#health.raise(code, "warning", text, hint, domain);
  }

  #settle(domain: string): void {
    this.#warned.delete(domain);
    this.#health.settle(code, domain);
  }

  #forget(domain: string): void {
    this.#windows.delete(domain);
    this.#settle(domain);
  }
}

function countsOf(parts: readonly MetricsData[]): ReadonlyMap<string, CookieCounts> {
  const counts = new Map<string, { requests: number; passed: number }>();
  const add = (name: string, what: keyof CookieCounts, counted: (sample: Sample) => boolean) => {
    for (const metric of parts.flat()) {
      if (metric.name !== name) continue;
      const values: readonly Sample[] = metric.values;
      for (const sample of values.filter(counted)) {
        const domain = String(sample.labels["domain"] ?? "");
        const of = counts.get(domain) ?? { requests: 0, passed: 0 };
        of[what] += sample.value;
        counts.set(domain, of);
      }
    }
  };
  add("accel_agent_requests_total", "requests", ({ labels }) => labels["cache"] !== "blocked");
  add("accel_agent_cache_passed_total", "passed", ({ labels }) => labels["reason"] === "cookie");
  return counts;
}
