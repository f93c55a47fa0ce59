// Counters and histograms for what happens with every request. Whoever counts looks a cell up once and keeps it: adding to it is adding to a number. A
// counter of prom-client makes a text of its labels at each count, which costs more than a short answer. The registry reads the numbers when it is scraped.

/** One series of a counter. */
export type CounterCell = { value: number };

type Series = { readonly labels: Readonly<Record<string, string>> };

/** A value as a registry of prom-client gives it out. */
type ExposedValue = {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly metricName?: string;
};

abstract class Tally<Cell> {
  readonly name: string;
  readonly help: string;
  readonly aggregator = "sum";
  abstract readonly type: "counter" | "histogram";
  readonly #labelNames: readonly string[];
  readonly #cells = new Map<string, Cell & Series>();

  constructor(name: string, help: string, labelNames: readonly string[]) {
    this.name = name;
    this.help = help;
    this.#labelNames = labelNames;
  }

  /** Returns the series with these values of the labels, in the order of the table; it is exposed from now on. Keep it. */
  cell(...values: readonly string[]): Cell {
    const key = JSON.stringify(values);
    const known = this.#cells.get(key);
    if (known !== undefined) return known;
    if (values.length !== this.#labelNames.length)
      throw new TypeError(`${this.name} has the labels ${this.#labelNames.join(", ")}`);
    const labels = Object.fromEntries(this.#labelNames.map((name, i) => [name, values[i] ?? ""]));
    const made = { ...this.make(), labels };
    this.#cells.set(key, made);
    return made;
  }

  async get() {
    const values = [...this.#cells.values()].flatMap((cell) => this.expose(cell, cell.labels));
    const { name, help, type, aggregator } = this;
    return { name, help, type, values, aggregator };
  }

  protected abstract make(): Cell;
  protected abstract expose(cell: Cell, labels: Series["labels"]): readonly ExposedValue[];
}

export class TallyCounter extends Tally<CounterCell> {
  readonly type = "counter";

  protected make(): CounterCell {
    return { value: 0 };
  }

  protected expose({ value }: CounterCell, labels: Series["labels"]): readonly ExposedValue[] {
    return [{ value, labels }];
  }
}

/** One series of a histogram. */
export type HistogramCell = {
  /** By bucket; the last one has what is above all bounds. */
  readonly counts: Float64Array;
  sum: number;
};

export class TallyHistogram extends Tally<HistogramCell> {
  readonly type = "histogram";
  readonly #bounds: readonly number[];

  constructor(
    name: string,
    help: string,
    labelNames: readonly string[],
    bounds: readonly number[],
  ) {
    super(name, help, labelNames);
    this.#bounds = bounds;
  }

  observe(cell: HistogramCell, value: number): void {
    let at = 0;
    while (at < this.#bounds.length && value > (this.#bounds[at] ?? 0)) at++;
    cell.counts[at] = (cell.counts[at] ?? 0) + 1;
    cell.sum += value;
  }

  protected make(): HistogramCell {
    return { counts: new Float64Array(this.#bounds.length + 1), sum: 0 };
  }

  protected expose({ counts, sum }: HistogramCell, labels: Series["labels"]) {
    let count = 0;
    const buckets = [...this.#bounds, "+Inf"].map((le, at) => ({
      metricName: `${this.name}_bucket`,
      labels: { le, ...labels },
      value: (count += counts[at] ?? 0),
    }));
    return [
      ...buckets,
      { metricName: `${this.name}_sum`, labels, value: sum },
      { metricName: `${this.name}_count`, labels, value: count },
    ];
  }
}
