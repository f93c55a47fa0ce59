// Days of variants without a gap, and today in words.

import { expect, test } from "vitest";
import { imageDays, todaysImages } from "../../src/console/image-days.ts";

const dayS = 86_400;
const firstS = Date.parse("2026-11-27") / 1e3;

test("days without a variant are shown as nothing, today too", () => {
  const days = imageDays({
    domain: "www.example.com",
    today: { day: "2026-11-30", made: 0, held_back: 0 },
    days: [
      { day: "2026-11-29", made: 412, held_back: 0 },
      { day: "2026-11-27", made: 20_000, held_back: 318 },
    ],
  });
  expect(days).toEqual({
    times: [firstS, firstS + dayS, firstS + 2 * dayS, firstS + 3 * dayS],
    made: [20_000, 0, 412, 0],
    heldBack: [318, 0, 0, 0],
  });
});

test("a host whose clock is ahead has told of tomorrow", () => {
  const today = { day: "2026-11-27", made: 1, held_back: 0 };
  const days = [{ day: "2026-11-28", made: 2, held_back: 0 }, today];
  expect(imageDays({ domain: "www.example.com", today, days }).made).toEqual([1, 2]);
});

test.each([
  [0, 0, "Today (UTC) 0 variants were made."],
  [1, 0, "Today (UTC) 1 variant was made."],
  [
    20_000,
    1_318,
    "Today (UTC) 20,000 variants were made. A host has used up its number of the day (images.variants_per_day_max): at least 1,318 variants were held back. Until 00:00 UTC visitors get the originals of pictures that have none yet.",
  ],
])("%s made, %s held back", (made, held_back, words) => {
  expect(todaysImages({ day: "2026-11-30", made, held_back })).toBe(words);
});
