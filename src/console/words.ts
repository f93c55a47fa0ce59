// Figures and times as people read them. All times are those of the reader's clock; the exact one stands in a title.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

export function count(value: number): string {
  return whole.format(value);
}

export function shortCount(value: number): string {
  return Math.abs(value) < 10_000 ? rounded(value) : short.format(value);
}

function rounded(value: number): string {
  return Number.isInteger(value) ? whole.format(value) : String(Number(value.toPrecision(3)));
}

export function percent(part: number, of: number): string {
  if (of === 0) return "–";
  const value = (100 * part) / of;
  // What is not all is not 100, and what is something is not 0.
  if (value > 99.9 && part < of) return "> 99.9 %";
  if (value > 0 && value < 0.1) return "< 0.1 %";
  return `${value.toFixed(value === 0 || value === 100 ? 0 : 1)} %`;
}

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function byteCount(value: number): string {
  let unit = 0;
  let left = value;
  while (left >= 1_000 && unit < units.length - 1) {
    left /= 1_024;
    unit++;
  }
  return `${unit === 0 ? whole.format(left) : Number(left.toPrecision(3))} ${units[unit] ?? ""}`;
}

/** Bytes a second in the bits of networks, whose thousands are thousands. */
export function bitRate(bytesPerSecond: number): string {
  return `${short.format(bytesPerSecond * 8)}bit/s`.replace(/([KMBT]?)bit/, (_all, unit: string) =>
    unit === "" ? " bit" : ` ${unit === "K" ? "k" : unit === "B" ? "G" : unit}bit`,
  );
}

export function seconds(value: number): string {
  if (value === 0) return "0 s";
  if (value < 0.001) return `${Number((value * 1e6).toPrecision(2))} µs`;
  if (value < 1) return `${Number((value * 1e3).toPrecision(3))} ms`;
  if (value < 120) return `${Number(value.toPrecision(3))} s`;
  if (value < 7_200) return `${Math.round(value / 60)} min`;
  if (value < 172_800) return `${Math.round(value / 3_600)} h`;
  return `${Math.round(value / 86_400)} days`;
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

/** How long ago, or how far ahead, a moment is. */
export function distance(ms: number, nowMs: number = Date.now()): string {
  const away = (ms - nowMs) / 1_000;
  if (Math.abs(away) < 5) return "now";
  const text = seconds(Math.round(Math.abs(away)));
  return away < 0 ? `${text} ago` : `in ${text}`;
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
  return `${count(number)} ${number === 1 ? one : many}`;
}
