// Numbers, sizes, shares and times as people read them, on the console and on the agent's own page. The exact value belongs in a title beside them.

/**
 * Made by whoever asks first: with the first thing that is made of `Intl`, a process takes 7 MiB of ICU's tables and code, and an idle agent needs nothing else of them.
 */
let short: Intl.NumberFormat | undefined;

/** Writes a number without its fraction, with a comma before each three digits, as `Intl.NumberFormat` does for English. */
export function wholeNumber(value: number): string {
  const digits = Math.round(Math.abs(value))
    .toFixed(0)
    .replaceAll(/\B(?=(?:\d{3})+$)/g, ",");
  return value < 0 || Object.is(value, -0) ? `-${digits}` : digits;
}

/** Writes three digits that count; from 10,000 on with K, M and so on. */
export function shortNumber(value: number): string {
  if (Math.abs(value) >= 10_000) {
    short ??= new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
    return short.format(value);
  }
  return Number.isInteger(value) ? wholeNumber(value) : String(Number(value.toPrecision(3)));
}

/** Writes the share of `of` in percent; a dash if there is nothing to have a share of. */
export function percentText(part: number, of: number): string {
  if (of === 0) return "–";
  const value = (100 * part) / of;
  // What is not all is not 100, and what is something is not 0.
  if (value > 99.9 && part < of) return "> 99.9 %";
  if (value > 0 && value < 0.1) return "< 0.1 %";
  return `${value.toFixed(value === 0 || value === 100 ? 0 : 1)} %`;
}

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function sizeText(bytes: number): string {
  let unit = 0;
  let left = bytes;
  while (left >= 1_000 && unit < units.length - 1) {
    left /= 1_024;
    unit++;
  }
  return `${unit === 0 ? wholeNumber(left) : Number(left.toPrecision(3))} ${units[unit] ?? ""}`;
}

export function durationText(seconds: number): string {
  if (seconds === 0) return "0 s";
  if (seconds < 0.001) return `${Number((seconds * 1e6).toPrecision(2))} µs`;
  if (seconds < 1) return `${Number((seconds * 1e3).toPrecision(3))} ms`;
  if (seconds < 120) return `${Number(seconds.toPrecision(3))} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

/** Writes how long ago, or how far ahead, a moment is. */
export function distanceText(ms: number, nowMs: number): string {
  const away = (ms - nowMs) / 1_000;
  if (Math.abs(away) < 5) return "now";
  const text = durationText(Math.round(Math.abs(away)));
  return away < 0 ? `${text} ago` : `in ${text}`;
}
