// Channels that other centrals hold, as they are told and read.

import { expect, test } from "vitest";
import { OtherChannels } from "../../../src/central/cluster/other-channels.ts";
import type { ChannelRow } from "../../../src/central/store/centrals/channels.ts";

const row = (id: number, more: Partial<ChannelRow> = {}): ChannelRow => {
  return { id, siteId: 1, instanceId: "i1", bootId: "b", central: "a", ...more };
};

test("channels come and go by the site, the instance and the central", () => {
  const others = new OtherChannels();
  others.add([row(1), row(2, { instanceId: "i2", central: "b" }), row(3, { siteId: 2 })]);
  expect(others.of(1).map(({ id }) => id)).toEqual([1, 2]);
  expect(others.silences(1, undefined, 0)).toEqual([0, 0]);
  expect(others.silences(1, "i2", 0)).toEqual([0]);
  expect(others.silences(1, "i3", 0)).toEqual([]);
  expect(others.remove([2, 9])).toEqual([row(2, { instanceId: "i2", central: "b" })]);
  expect(others.removeOf("a").map(({ id }) => id)).toEqual([1, 3]);
  expect([others.of(1), others.of(2)]).toEqual([[], []]);
});

test("of an instance the newest channel is kept, in whichever order they are told", () => {
  const others = new OtherChannels();
  const other = row(6, { instanceId: "i2" });
  expect(others.add([row(7), row(5), other])).toEqual([row(7), other]);
  others.add([row(8, { central: "b" })]);
  expect(others.of(1).map(({ id }) => id)).toEqual([6, 8]);
  expect(others.newest(1, "i1")?.id).toBe(8);
  expect(others.newest(2, "i1")).toBeUndefined();
  // One that this central holds itself.
  others.supersede(1, "i1", 9);
  others.supersede(1, "i2", 5);
  expect(others.of(1).map(({ id }) => id)).toEqual([6]);
});

test("what is read says what differs, and what it does not know is forgotten", () => {
  const others = new OtherChannels();
  const [one, two, three] = [row(1), row(2, { instanceId: "i2" }), row(3, { instanceId: "i3" })];
  others.add([one, two]);
  expect(others.compare([two, three])).toEqual({ appeared: [three], left: [one] });
  expect(others.of(1).map(({ id }) => id)).toEqual([2]);
});

test("a channel that is told to be silent is so until it is not told again", () => {
  const others = new OtherChannels();
  others.add([row(1)]);
  others.silent(1, 21_000, 100_000);
  others.silent(9, 21_000, 100_000);
  expect(others.silences(1, "i1", 101_500)).toEqual([22_500]);
  expect(others.silences(1, "i1", 103_001)).toEqual([0]);
  others.silent(1, 5, 104_000);
  expect(others.silences(1, "i1", 104_000)).toEqual([20_001]);
  others.remove([1]);
  others.add([row(1)]);
  expect(others.silences(1, "i1", 104_000)).toEqual([0]);
});

test("a poll counts for as long as it is told again", () => {
  const others = new OtherChannels();
  others.polled(1, "i1", 1_000);
  others.polled(1, "i2", 5_000);
  expect([others.isPolling(1, "i1", 7_999), others.isPolling(1, "i1", 8_000)]).toEqual([
    true,
    false,
  ]);
  others.polled(1, "i1", 8_500);
  expect([others.isPolling(1, "i1", 9_000), others.isPolling(1, "i2", 9_000)]).toEqual([
    true,
    true,
  ]);
  expect(others.isPolling(2, "i1", 9_000)).toBe(false);
});
