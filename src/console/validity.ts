// How long a certificate is still good for, in words. Pure.

import type { Tone } from "./parts/pieces.tsx";
import { several } from "./words.ts";

const dayMs = 86_400_000;
const warnDays = 14;
const badDays = 3;

/** `nowMs` and the times count from the epoch. What has a part of a day left has that many whole days. */
export function validityOf(
  notBeforeMs: number,
  notAfterMs: number,
  nowMs: number,
): { readonly tone: Tone; readonly text: string } {
  if (nowMs > notAfterMs) return { tone: "bad", text: "expired" };
  if (nowMs < notBeforeMs) return { tone: "warn", text: "not valid yet" };
  const days = Math.floor((notAfterMs - nowMs) / dayMs);
  const tone = days < badDays ? "bad" : days < warnDays ? "warn" : "good";
  return { tone, text: days === 0 ? "less than a day left" : `${several(days, "day")} left` };
}
