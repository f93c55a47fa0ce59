// A worker that dies again and again is replaced again and again, each time after a longer pause.

import { expect, test } from "vitest";
import { until } from "../../../support/until.ts";
import { raw } from "../edge.ts";
import { start, stateWithVersion, versionSeen } from "../pool-rig.ts";

test("the first time at once, before it has settled after a pause that is drawn anew", async () => {
  let drawn = 0;
  await using s = await start({ count: 1, random: () => (drawn++, 0) });
  await s.pool.publish(stateWithVersion);
  const pauses: number[] = [];
  for (let times = 1; times <= 3; times++) {
    await raw(s.pool, "GET /v HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: die\r\n\r\n");
    await until("a replacement", () => s.pool.status().replacements === times);
    await until("it lives", () => s.pool.status().live === 1);
    expect(await versionSeen(s.pool)).toBe(1);
    pauses.push(drawn);
  }
  expect(pauses).toEqual([0, 1, 2]);
  expect(s.starts).toEqual([1, 1, 1, 1]);
});
