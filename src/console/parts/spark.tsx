// A line without axes, for a row of a table: whether something rises or falls is seen at a glance.

import type { JSX } from "preact";

const [width, height] = [120, 26];

export function Spark({
  values,
  label,
}: {
  readonly values: readonly number[];
  readonly label: string;
}): JSX.Element {
  const most = Math.max(1, ...values);
  const step = width / Math.max(1, values.length - 1);
  const points = values.map(
    (value, no) =>
      `${(no * step).toFixed(1)},${(height - 1 - (value / most) * (height - 3)).toFixed(1)}`,
  );
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      <polyline points={points.join(" ")} />
    </svg>
  );
}
