// Figures and times as people read them. All times are those of the reader's clock; the exact one stands in a title.

import { distanceText, wholeNumber } from "../core/quantities.ts";

export {
  durationText as seconds,
  percentText as percent,
  shortNumber as shortCount,
  sizeText as byteCount,
  wholeNumber as count,
} from "../core/quantities.ts";

const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** Bytes a second in the bits of networks, whose thousands are thousands. */
export function bitRate(bytesPerSecond: number): string {
  return `${short.format(bytesPerSecond * 8)}bit/s`.replace(/([KMBT]?)bit/, (_all, unit: string) =>
    unit === "" ? " bit" : ` ${unit === "K" ? "k" : unit === "B" ? "G" : unit}bit`,
  );
}

const clock = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const dayAndYear = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
});

/** A moment, in milliseconds since the epoch. */
export function moment(ms: number, nowMs: number = Date.now()): string {
  const at = new Date(ms);
  const time = clock.format(at);
  if (new Date(nowMs).toDateString() === at.toDateString()) return time;
  const isThisYear = new Date(nowMs).getFullYear() === at.getFullYear();
  return `${(isThisYear ? day : dayAndYear).format(at)}, ${time}`;
}

const range = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});

/** A moment that somebody may have written by hand into an address: seconds since the epoch, or ISO 8601. NaN: it is none. In milliseconds. */
export function writtenMs(text: string): number {
  const seconds = Number(text);
  const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(text);
  return Number.isNaN(new Date(ms).getTime()) ? NaN : ms;
}

/** From one moment to another, in milliseconds since the epoch, each with its day: `28 Nov, 01:00 – 29 Nov, 02:00`. */
export function periodText(fromMs: number, toMs: number): string {
  return range.formatRange(fromMs, toMs);
}

/** How long ago, or how far ahead, a moment is. */
export function distance(ms: number, nowMs: number = Date.now()): string {
  return distanceText(ms, nowMs);
}

const hours = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

/** A mark below a plot; midnight says its day. */
export function clockText(ms: number): string {
  const text = hours.format(ms);
  return text === "00:00" ? day.format(ms) : text;
}

export function dayText(ms: number): string {
  return day.format(ms);
}

/** `1 host`, `2 hosts`. */
export function several(number: number, one: string, many = `${one}s`): string {
  return `${wholeNumber(number)} ${number === 1 ? one : many}`;
}
