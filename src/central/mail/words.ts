// Numbers and times as mails write them: always in the same language and zone, whatever host central runs on.

const numbers = new Intl.NumberFormat("en-US");
const short = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

export function numberText(value: number): string {
  return numbers.format(value);
}

/** Writes `2026-11-22 06:30 UTC`. */
export function timeText(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`;
}

export function dayText(iso: string): string {
  return iso.slice(0, 10);
}

const byteUnits = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1_024 && unit < byteUnits.length - 1) {
    value /= 1_024;
    unit++;
  }
  return `${short.format(value)} ${byteUnits[unit]}`;
}

/** Writes a percentage, or a dash if there is nothing to compare with. */
export function shareText(part: number, whole: number): string {
  return whole === 0 ? "–" : `${short.format((part * 100) / whole)} %`;
}

/** Writes `+12 %` against the time before; undefined if there was nothing then. */
export function changeText(now: number, before: number): string | undefined {
  if (before === 0) return undefined;
  const percent = Math.round(((now - before) * 100) / before);
  return `${percent > 0 ? "+" : ""}${numbers.format(percent)} % on the week before`;
}

export function countText(count: number, one: string, many = `${one}s`): string {
  return `${numbers.format(count)} ${count === 1 ? one : many}`;
}
