// Which points of a line stand alone.

import { expect, test } from "vitest";
import { lonePoints } from "../../src/console/lone-points.ts";

test.each([
  [[], []],
  [[1], [0]],
  [[null], []],
  [[1, 2], []],
  [[1, null, 2, 3], [0]],
  [
    [null, 0, null, undefined, 5],
    [1, 4],
  ],
  [[null, 1, 2, null], []],
])("%j: %j", (values, alone) => {
  expect(lonePoints(values)).toEqual(alone);
});
