// A plot over time: lines, or areas that add up. A stretch that is dragged across it becomes the window; the same figures stand in a table for whoever does not see plots.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import UPlot from "uplot";
import { lonePoints } from "../lone-points.ts";
import { clockText, dayText, moment } from "../words.ts";
import { Button } from "./pieces.tsx";

export type Line = {
  readonly label: string;
  /** Null where there is nothing to tell. */
  readonly values: readonly (number | null)[];
  /** The number of a colour (`--line-1` and on), or the name of a meaning. */
  readonly colour: number | Meaning;
};

type Meaning = "good" | "warn" | "bad" | "quiet" | "edge" | "mark";

/** Something that happened, drawn as an upright line. */
export type Mark = { readonly at: number; readonly text: string };

export type ChartProps = {
  readonly title: string;
  /** When each span begins, in seconds since the epoch. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly isStacked?: boolean;
  readonly format: (value: number) => string;
  /** Whether the values are bytes, whose round numbers are powers of two. */
  readonly areBytes?: boolean;
  readonly marks?: readonly Mark[];
  readonly onWindow?: (since: number, until: number) => void;
};

const heightPx = 190;
const byteSteps = Array.from({ length: 50 }, (_, power) => 2 ** power);

export function Chart(props: ChartProps): JSX.Element {
  const { title, times, lines, format, marks = [] } = props;
  const place = useRef<HTMLDivElement>(null);
  const [isTable, setTable] = useState(false);
  const latest = useRef(props);
  latest.current = props;
  const plot = useRef<UPlot>(undefined);
  const isEmpty = lines.every(({ values }) =>
    values.every((value) => value === null || value === 0),
  );
  const labels = lines.map(({ label }) => label).join("\n");

  useEffect(() => {
    const element = place.current;
    if (element === null || isTable) return undefined;
    const drawn = draw(element, () => latest.current);
    plot.current = drawn;
    const watch = new ResizeObserver(() =>
      drawn.setSize({ width: element.clientWidth, height: heightPx }),
    );
    watch.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const redraw = (): void => drawn.redraw();
    dark.addEventListener("change", redraw);
    return () => {
      dark.removeEventListener("change", redraw);
      watch.disconnect();
      drawn.destroy();
      plot.current = undefined;
    };
  }, [labels, isTable]);
  // New figures come into the plot that is there: whoever is dragging goes on.
  useEffect(() => plot.current?.setData(dataOf(latest.current)), [times, lines, marks]);

  return (
    <figure class="chart">
      <figcaption>
        {title}
        <Button
          onClick={() => setTable(!isTable)}
          label={`${title} as a ${isTable ? "plot" : "table"}`}
        >
          {isTable ? "Plot" : "Table"}
        </Button>
      </figcaption>
      {isTable ? (
        <FiguresTable title={title} times={times} lines={lines} format={format} />
      ) : (
        <>
          <div
            ref={place}
            class="plot"
            role="img"
            aria-label={`${title}: ${summary(lines, format)}`}
          />
          {isEmpty && <p class="quiet">Nothing in this time.</p>}
        </>
      )}
      {marks.length > 0 && !isTable && (
        <details class="marks">
          <summary>What happened in this time ({marks.length})</summary>
          <ul>
            {marks.map(({ at, text }) => (
              <li key={`${at} ${text}`}>
                {moment(at * 1_000)} {text}
              </li>
            ))}
          </ul>
        </details>
      )}
    </figure>
  );
}

function FiguresTable({ title, times, lines, format }: ChartProps): JSX.Element {
  return (
    <div class="scrolls figures" tabIndex={0} role="region" aria-label={`${title}, as a table`}>
      <table>
        <thead>
          <tr>
            <th scope="col">from</th>
            {lines.map(({ label }) => (
              <th key={label} scope="col">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.map((at, no) => (
            <tr key={at}>
              <th scope="row">{moment(at * 1_000)}</th>
              {lines.map(({ label, values }) => {
                const value = values[no] ?? null;
                return <td key={label}>{value === null ? "–" : format(value)}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The most of each line, for whoever hears the plot. */
function summary(lines: readonly Line[], format: (value: number) => string): string {
  return lines
    .map(({ label, values }) => {
      const most = values.reduce<number>((best, value) => Math.max(best, value ?? 0), 0);
      return `${label} up to ${format(most)}`;
    })
    .join(", ");
}

function colourOf(colour: Line["colour"]): string {
  return getComputedStyle(document.documentElement).getPropertyValue(
    typeof colour === "number" ? `--line-${colour}` : `--${colour}`,
  );
}

/** What is drawn: of a stack each layer with all below it, the highest first, so that lower ones lie over it. */
function layersOf({ lines, isStacked }: ChartProps): readonly Line[] {
  if (isStacked !== true) return lines;
  let below: readonly number[] = [];
  const stacked = lines.map((line) => {
    below = line.values.map((value, no) => (value ?? 0) + (below[no] ?? 0));
    return { ...line, values: below };
  });
  return stacked.toReversed();
}

function dataOf(props: ChartProps): UPlot.AlignedData {
  return [
    props.times,
    ...layersOf(props).map(({ values }) => values),
  ] as unknown as UPlot.AlignedData;
}

function draw(element: HTMLElement, latest: () => ChartProps): UPlot {
  const { isStacked, format, areBytes } = latest();
  const layers = layersOf(latest());
  const valueAt = (label: string, no: number | null): number | null => {
    const line = latest().lines.find((one) => one.label === label);
    return no === null ? null : (line?.values[no] ?? null);
  };
  const ink = (): string => colourOf("quiet");
  const grid = { stroke: () => colourOf("edge"), width: 1 };
  const options: UPlot.Options = {
    width: element.clientWidth,
    height: heightPx,
    cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
    legend: { live: true },
    scales: { y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.05 : 1] } },
    axes: [
      { stroke: ink, grid, ticks: grid, values: timeTexts },
      {
        stroke: ink,
        grid,
        ticks: grid,
        size: 64,
        ...(areBytes === true && { incrs: byteSteps }),
        values: (_plot, values) => values.map((value) => format(value)),
      },
    ],
    series: [
      { label: "time", value: (_plot, at) => (at === null ? "" : moment(at * 1_000)) },
      ...layers.map(({ label, colour }): UPlot.Series => ({
        label,
        stroke: () => colourOf(colour),
        ...(isStacked === true && { fill: () => `${colourOf(colour).trim()}66` }),
        width: 1.5,
        points: {
          filter: (plot, no, isShown) => (isShown ? null : lonePoints([...(plot.data[no] ?? [])])),
        },
        value: (_plot, _value, _series, no) => {
          const value = valueAt(label, no);
          return value === null ? "–" : format(value);
        },
      })),
    ],
    hooks: {
      draw: [(plot) => drawMarks(plot, latest().marks ?? [])],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 5) return;
          latest().onWindow?.(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
  return new UPlot(options, dataOf(latest()), element);
}

/** The times below a plot: hours and minutes, or days where days lie between. */
function timeTexts(
  _plot: UPlot,
  times: readonly number[],
  _axis: number,
  _space: number,
  stepS: number,
): string[] {
  return times.map((at) => (stepS < 86_400 ? clockText(at * 1_000) : dayText(at * 1_000)));
}

function drawMarks(plot: UPlot, marks: readonly Mark[]): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colourOf("mark");
  ctx.setLineDash([4, 4]);
  for (const { at } of marks) {
    // What happened in the minute that goes on stands at the end.
    const left = Math.min(Math.round(plot.valToPos(at, "x", true)), bbox.left + bbox.width - 1);
    if (left < bbox.left) continue;
    ctx.beginPath();
    ctx.moveTo(left, bbox.top);
    ctx.lineTo(left, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
