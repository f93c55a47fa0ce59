// Which report is due: by the hour and day of a time zone, over the turns of summer time and of the year.

import { expect, test } from "vitest";
import { duePeriods } from "../../../src/central/mail/calendar.ts";

const monday = 1;

test.each([
  // A Monday in UTC.
  ["2026-11-23T06:29:59Z", "UTC", "06:30", "2026-11-22", "2026-11-16"],
  ["2026-11-23T06:30:00Z", "UTC", "06:30", "2026-11-23", "2026-11-23"],
  ["2026-11-29T23:59:59Z", "UTC", "06:30", "2026-11-29", "2026-11-23"],
  // The same moment is another day elsewhere.
  ["2026-11-22T17:00:00Z", "Pacific/Auckland", "06:00", "2026-11-23", "2026-11-23"],
  ["2026-11-23T05:00:00Z", "America/Los_Angeles", "06:00", "2026-11-22", "2026-11-16"],
  // Summer time ends in Berlin on 2026-10-25, begins on 2027-03-28.
  ["2026-10-26T05:29:00Z", "Europe/Berlin", "06:30", "2026-10-25", "2026-10-19"],
  ["2026-10-26T05:30:00Z", "Europe/Berlin", "06:30", "2026-10-26", "2026-10-26"],
  ["2027-03-29T04:30:00Z", "Europe/Berlin", "06:30", "2027-03-29", "2027-03-29"],
  ["2027-03-28T00:59:00Z", "Europe/Berlin", "02:30", "2027-03-27", "2027-03-22"],
  ["2027-03-28T01:00:00Z", "Europe/Berlin", "02:30", "2027-03-28", "2027-03-22"],
  ["2027-01-01T00:00:00Z", "UTC", "00:00", "2027-01-01", "2026-12-28"],
])("%s in %s, at %s: daily %s, weekly %s", (now, timeZone, at, daily, weekly) => {
  expect(duePeriods(new Date(now), { timeZone, at, weekday: monday })).toEqual({ daily, weekly });
});
