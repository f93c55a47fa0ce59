// What happens meanwhile: an operator's rollback that what it meant has left behind, and an activation whose successor came.

import { describe, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { Disk } from "./disk.ts";
import { activated, domainsChanged } from "./entries.ts";
import { digestOf } from "./fake-sets.ts";
import { corrections, domain, failing, inForce, never, rigWith } from "./release-scene.ts";
import type { Rig } from "./rig.ts";

/** `two` is in force, `three` is being staged; then the operator asks, and what was held goes on. */
async function askedWhileStaged(rig: Rig, said?: string): Promise<readonly [unknown, unknown]> {
  const [held, staged] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  rig.hold = async (name) => {
    if (name !== "stage") return;
    staged.resolve();
    await held.promise;
  };
  const three = rig.apply("viewset.activated", activated(domain, "three"), 3);
  await staged.promise;
  rig.steps.length = 0;
  const back = rig.ports.activations.rollBack(domain, said, never).catch((error: unknown) => error);
  await until("it is prepared", () => rig.steps.includes("prepare"));
  held.resolve();
  return [await three, await back];
}

test("an operator who wanted to leave another version than the one in force by then is refused", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one", "two");
  const [three, back] = await askedWhileStaged(rig);
  expect(three).toMatchObject({ phase: "applied" });
  expect(back).toMatchObject({
    code: "CONFLICT",
    message:
      '"three" is in force now, no longer "two"; nothing was changed: look at `viewset list`, and repeat the command if you still want it',
  });
  expect(inForce(rig)).toBe(digestOf("three"));
  expect(rig.books.of(domain).pin).toBeNull();
  expect(corrections(disk)).toEqual([]);
  // Asked again it is meant.
  await rig.ports.activations.rollBack(domain, "one", never);
  expect(rig.books.of(domain).pin).toMatchObject({
    viewset_name: "one",
    instead_of: digestOf("three"),
  });
});

test("an operator is refused too where only central's wish is another by then", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one", "two");
  failing(rig, "three");
  const [three, back] = await askedWhileStaged(rig, "one");
  expect(three).toMatchObject({ phase: "refused" });
  expect(back).toMatchObject({
    code: "CONFLICT",
    message:
      '"two" is still in force, but central wants "three" now, no longer "two"; nothing was changed: look at `viewset list`, and repeat the command if you still want it',
  });
  expect(inForce(rig)).toBe(digestOf("two"));
  expect(rig.books.of(domain).pin).toBeNull();
});

test("the same wish by another entry is the same wish", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one", "two");
  const { activations } = rig.ports;
  const held = Promise.withResolvers<void>();
  rig.hold = async (name) => {
    if (name !== "prepare") return;
    rig.hold = async () => undefined;
    await held.promise;
  };
  const back = activations.rollBack(domain, undefined, never);
  await rig.apply("viewset.activated", activated(domain, "two"), 3);
  held.resolve();
  expect(await back).toMatchObject({ viewset_name: "one" });
  expect(inForce(rig)).toBe(digestOf("one"));
});

describe("of a domain that is unlinked while its version is fetched", () => {
  type Asked = (rig: Rig) => Promise<unknown>;
  test.each<readonly [string, Asked]>([
    ["a rollback", async ({ ports }) => ports.activations.rollBack(domain, "one", never)],
    ["another try", async ({ ports }) => ports.activations.retry(domain, never)],
  ])("%s is refused and leaves nothing", async (_, ask) => {
    using disk = new Disk();
    const rig = await rigWith(disk, "one", "two");
    const [fetched, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    rig.hold = async (name) => {
      if (name !== "prepare") return;
      fetched.resolve();
      await held.promise;
    };
    const asked = ask(rig).catch((error: unknown) => error);
    await fetched.promise;
    await rig.apply("domains.changed", domainsChanged({}), 3);
    const left = disk.content();
    const begun = rig.trials.length;
    held.resolve();
    expect(await asked).toMatchObject({
      code: "NOT_FOUND",
      message: "a.example is no longer linked",
    });
    expect(disk.content()).toEqual(left);
    expect(rig.served.domains).toEqual([]);
    expect(rig.trials).toHaveLength(begun);
    expect(rig.rooms).toBe(0);
    const counted = await rig.registry
      .getSingleMetric("accel_agent_viewset_rollbacks_total")
      ?.get();
    expect(counted?.values).toEqual([]);
  });
});

describe("an activation that its successor ends", () => {
  test.each(["prepare", "stage"])("while it is at %s changes nothing", async (place) => {
    using disk = new Disk();
    const rig = await rigWith(disk, "one");
    const before = rig.books.of(domain);
    const [at, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    rig.hold = async (name) => {
      if (name !== place) return;
      at.resolve();
      await held.promise;
    };
    const end = new AbortController();
    const body = activated(domain, "two");
    const entry = { epoch: "e", seq: 2 };
    const ended = rig.ports.activations.activate(body, entry, end.signal);
    await at.promise;
    rig.steps.length = 0;
    end.abort(3);
    held.resolve();
    await expect(ended).rejects.toBe(3);
    expect(rig.steps).toEqual([]);
    expect(rig.books.of(domain)).toEqual(before);
    expect(rig.trials.map(([, manifest]) => manifest)).toEqual([digestOf("one")]);
    // The successor comes into force as ever.
    await rig.apply("viewset.activated", activated(domain, "three"), 3);
    expect(inForce(rig)).toBe(digestOf("three"));
  });

  test("before it begins fetches nothing", async () => {
    using disk = new Disk();
    const rig = await rigWith(disk, "one");
    rig.steps.length = 0;
    const { activations } = rig.ports;
    const place = { epoch: "e", seq: 2 };
    const two = activations.activate(activated(domain, "two"), place, AbortSignal.abort(3));
    await expect(two).rejects.toBe(3);
    expect(rig.steps).toEqual([]);
  });

  test("at its commit is in force: the outcome counts", async () => {
    using disk = new Disk();
    const rig = await rigWith(disk, "one");
    const end = new AbortController();
    rig.onStep = (_, name) => {
      if (name === "put done") end.abort(3);
    };
    const place = { epoch: "e", seq: 2 };
    const outcome = await rig.ports.activations.activate(
      activated(domain, "two"),
      place,
      end.signal,
    );
    expect(outcome.phase).toBe("applied");
    expect(inForce(rig)).toBe(digestOf("two"));
  });
});
