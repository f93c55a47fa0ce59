// Which lines of a text are new in another: the longest common subsequence of lines, with a few lines around each difference. Pure.

export type DiffLine = {
  readonly kind: "same" | "added" | "removed" | "cut";
  readonly text: string;
};

const aroundLines = 3;
/** The table has a cell for each pair of lines; texts beyond that are shown one after the other. */
const cellsMax = 4_000_000;

export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [a, b] = [linesIn(before), linesIn(after)];
  if (a.length * b.length > cellsMax)
    return [...a.map((text) => line("removed", text)), ...b.map((text) => line("added", text))];
  return shortened(walk(a, b, lengthsOf(a, b)));
}

function linesIn(text: string): readonly string[] {
  return text === "" ? [] : text.split("\n");
}

const line = (kind: DiffLine["kind"], text: string): DiffLine => ({ kind, text });

/** The length of the longest common subsequence of `a` from a line on with `b` from a line on. */
function lengthsOf(
  a: readonly string[],
  b: readonly string[],
): (atA: number, atB: number) => number {
  const width = b.length + 1;
  const cells = new Uint32Array((a.length + 1) * width);
  const get = (atA: number, atB: number): number => cells[atA * width + atB] ?? 0;
  for (let atA = a.length - 1; atA >= 0; atA--)
    for (let atB = b.length - 1; atB >= 0; atB--)
      cells[atA * width + atB] =
        a[atA] === b[atB]
          ? get(atA + 1, atB + 1) + 1
          : Math.max(get(atA + 1, atB), get(atA, atB + 1));
  return get;
}

function walk(
  a: readonly string[],
  b: readonly string[],
  lengthFrom: (atA: number, atB: number) => number,
): readonly DiffLine[] {
  const found: DiffLine[] = [];
  let [atA, atB] = [0, 0];
  for (;;) {
    const [textA, textB] = [a[atA], b[atB]];
    if (textA === undefined && textB === undefined) return found;
    if (textA !== undefined && textA === textB) {
      found.push(line("same", textA));
      atA++;
      atB++;
    } else if (
      textA !== undefined &&
      (textB === undefined || lengthFrom(atA + 1, atB) >= lengthFrom(atA, atB + 1))
    ) {
      found.push(line("removed", textA));
      atA++;
    } else {
      found.push(line("added", textB ?? ""));
      atB++;
    }
  }
}

/** Cuts out what is far from any difference. */
function shortened(all: readonly DiffLine[]): readonly DiffLine[] {
  const isNear = (no: number): boolean =>
    all
      .slice(Math.max(0, no - aroundLines), no + aroundLines + 1)
      .some(({ kind }) => kind !== "same");
  const found: DiffLine[] = [];
  for (const [no, one] of all.entries()) {
    if (isNear(no)) found.push(one);
    else if (found.at(-1)?.kind !== "cut") found.push(line("cut", "…"));
  }
  return found;
}
