// The limits of a rollout where nobody says other ones.

import type { RolloutPlan } from "./rollout.ts";

const minuteMs = 60_000;

export const rolloutDefaults: RolloutPlan = {
  canary: 1,
  wavePercent: 20,
  soakMs: 10 * minuteMs,
  graceMs: minuteMs,
  installMs: 10 * minuteMs,
  silenceMs: minuteMs,
  boundMs: 24 * 60 * minuteMs,
  restartsMax: 0,
  errorShareMax: 0.02,
  answersMin: 100,
  missesMax: 3,
};
