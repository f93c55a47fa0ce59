// Hours for tests: samples each of which comes when the test says so, and one hour full of everything.

import {
  LastHour,
  samplePeriodMs,
  samplesMax,
  type MetricsReading,
} from "../../../src/agent/admin/last-hour.ts";

export const quietReading: MetricsReading = {
  requests: 0,
  hits: 0,
  blocked: 0,
  originWaits: 0,
  originWaitS: 0,
  waiting: 0,
  spoolBytes: 0,
  oldestS: 0,
  journalLag: 0,
  canaryAgeS: 0,
};

/** An hour that begins at noon and is given samples. */
export class GivenHour {
  readonly hour = new LastHour();
  wallMs = Date.UTC(2026, 0, 1, 12);
  #steadyMs = 7_000;

  /** The host may have slept on the way, or its clock have been set. */
  take(reading: Partial<MetricsReading>, afterMs = samplePeriodMs, asleepMs = 0): this {
    this.wallMs += afterMs + asleepMs;
    this.#steadyMs += afterMs;
    const at = { wallMs: this.wallMs, steadyMs: this.#steadyMs };
    this.hour.take({ ...quietReading, ...reading }, at);
    return this;
  }

  view() {
    return this.hour.view(this.wallMs);
  }

  values() {
    return this.view().values;
  }
}

/** An hour of a busy host: waves of requests, an origin that was slow for a while, central gone for ten minutes, and a sleep of five. */
export function busyHour(): GivenHour {
  const given = new GivenHour();
  let [requests, hits, blocked, originWaits, originWaitS] = [5e6, 4e6, 1_000, 1e6, 9e4];
  for (let n = 0; n < samplesMax; n++) {
    const asked = Math.round(900 + 700 * Math.sin(n / 17) + ((n * 7_919) % 211));
    const fetched = Math.round(asked * (0.08 + ((n * 31) % 13) / 400));
    requests += asked;
    hits += asked - fetched;
    blocked += n % 40 < 6 ? (n * 37) % 90 : 0;
    originWaits += fetched;
    originWaitS += fetched * (n > 90 && n < 120 ? 1.4 : 0.06 + ((n * 17) % 10) / 300);
    const away = n > 150 && n < 190 ? (n - 150) * samplePeriodMs : 0;
    given.take(
      {
        requests,
        hits,
        blocked,
        originWaits,
        originWaitS,
        waiting: away === 0 ? n % 7 : (away * 60) / 1_000,
        spoolBytes: 3_456_789,
        oldestS: away === 0 ? 0.3 : away / 1_000,
        journalLag: away === 0 ? 0 : Math.floor(away / 200_000),
        canaryAgeS: (n % 4) * 15 + away / 1_000,
      },
      samplePeriodMs,
      n === 60 ? 300_000 : 0,
    );
  }
  return given;
}
