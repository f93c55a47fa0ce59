// What is stored is doubted after the process stood still, and for how long.

import { expect, test } from "vitest";
import { WakeDoubt } from "../../src/agent/unconfirmed.ts";
import { until } from "../support/until.ts";

class Index {
  isConfirmed = true;
  readonly told: string[] = [];
  setUnconfirmed(): void {
    this.isConfirmed = false;
    this.told.push("doubted");
  }
  setUnconfirmedServes(): void {
    this.isConfirmed = true;
    this.told.push("served");
  }
}

function rigged(
  index: Index,
  catchUpMs: number,
  unconfirmed: "revalidate" | "serve" = "revalidate",
) {
  const { signal: stop } = new AbortController();
  return new WakeDoubt({ index, unconfirmed, catchUpMs, stop });
}

test("it lasts until central has told", () => {
  const index = new Index();
  const doubt = rigged(index, 600_000);
  doubt.begin();
  expect(index.isConfirmed).toBe(false);
  doubt.begin();
  doubt.end();
  expect(index.told).toEqual(["doubted"]);
});

test("where central does not tell in time, the agent serves as one that is cut off", async () => {
  const index = new Index();
  rigged(index, 5).begin();
  await until("served", () => index.isConfirmed);
  expect(index.told).toEqual(["doubted", "served"]);
});

test("what central had told nothing of stays in doubt, and `serve` doubts nothing", () => {
  const [starting, serving] = [new Index(), new Index()];
  starting.isConfirmed = false;
  rigged(starting, 5).begin();
  rigged(serving, 5, "serve").begin();
  expect([...starting.told, ...serving.told]).toEqual([]);
});
