// Figures of a benchmark: one line each, with the limit beside it and whether it was met.

export const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[
    Math.min(values.length - 1, Math.floor(values.length * share))
  ] ?? 0;

export type Limit = { readonly most: number } | { readonly least: number };

export class Figures {
  readonly #say: (line: string) => void;
  readonly missed: string[] = [];

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  head(text: string): void {
    this.#say(`— ${text}`);
  }

  /** `more`: what stands beside it without a limit. */
  add(name: string, value: number, unit: string, limit?: Limit, more = ""): void {
    this.#say(
      `${name.padEnd(58)} ${shown(value).padStart(10)} ${unit.padEnd(10)} ${this.#judge(name, value, limit).padEnd(24)} ${more}`.trimEnd(),
    );
  }

  #judge(name: string, value: number, limit: Limit | undefined): string {
    if (limit === undefined) return "";
    const isMet = "most" in limit ? value <= limit.most : value >= limit.least;
    if (!isMet) this.missed.push(name);
    const text = "most" in limit ? `≤ ${shown(limit.most)}` : `≥ ${shown(limit.least)}`;
    return `${text}  ${isMet ? "ok" : "MISSED"}`;
  }
}

function shown(value: number): string {
  if (value >= 1_000) return Math.round(value).toLocaleString("en");
  return value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);
}
