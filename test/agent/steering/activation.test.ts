// Which version is in force: by central's wish and by an operator; what is remembered of it, and what central is told.

import { expect, test } from "vitest";
import { encodeManifestTable } from "../../../src/core/serving/manifest-table.ts";
import { AccelError } from "../../../src/core/faults.ts";
import { findFault } from "../../../src/agent/steering/staged-probes.ts";
import { until } from "../../support/until.ts";
import { Disk, epoch } from "./disk.ts";
import { activated, domainsChanged } from "./entries.ts";
import { digestOf } from "./fake-sets.ts";
import { corrections, domain, failing, inForce, never, rigWith } from "./release-scene.ts";
import { Rig } from "./rig.ts";

test("the last versions are kept, the oldest beyond them is forgotten", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one", "two", "three", "four");
  const { releases, pin, quarantined } = rig.books.of(domain);
  expect(releases.map(({ viewset_name: name, outcome }) => [name, outcome])).toEqual([
    ["two", "replaced"],
    ["three", "replaced"],
    ["four", "in force"],
  ]);
  expect({ pin, quarantined }).toEqual({ pin: null, quarantined: [] });
  expect(rig.books.held().map(({ manifest, standing }) => [manifest, standing])).toEqual([
    [digestOf("two"), "kept"],
    [digestOf("three"), "kept"],
    [digestOf("four"), "needed"],
  ]);
  rig.books.giveUp([
    { domain, manifest: digestOf("two") },
    { domain, manifest: digestOf("four") },
  ]);
  expect(rig.books.of(domain).releases.map(({ viewset_name: name }) => name)).toEqual([
    "three",
    "four",
  ]);
});

test("a version that does not answer when it is staged never serves, and is not tried again", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  failing(rig, "two");
  rig.steps.length = 0;
  const outcome = await rig.apply("viewset.activated", activated(domain, "two"), 2);
  const serving = { manifest: digestOf("one"), viewset_id: 7, viewset_name: "one" };
  expect(outcome).toEqual({
    phase: "refused",
    detail: { reason: "a.example /: EIO", code: "VIEWSET_PROBE_FAILED", serving },
  });
  expect(inForce(rig)).toBe(digestOf("one"));
  expect(rig.steps).not.toContain("flip");
  expect(rig.health.list().map(({ code }) => code)).toEqual(["viewset_quarantined"]);

  // The same entry after a crash: the same. Another one: what it was before. Nothing is fetched or staged for either.
  rig.answer = () => undefined;
  rig.steps.length = 0;
  expect(await rig.apply("viewset.activated", activated(domain, "two"), 2)).toEqual(outcome);
  expect(await rig.apply("viewset.activated", activated(domain, "two"), 3)).toEqual({
    phase: "refused",
    detail: {
      reason: "it failed on this host at 1970-01-01T00:00:00.000Z: a.example /: EIO",
      code: "VIEWSET_QUARANTINED",
      serving,
    },
  });
  expect(rig.steps.filter((step) => step === "prepare" || step === "stage")).toEqual([]);
  expect(rig.trials).toEqual([[domain, digestOf("one")]]);

  // Another version serves.
  await rig.apply("viewset.activated", activated(domain, "three"), 4);
  expect(inForce(rig)).toBe(digestOf("three"));
  expect(rig.health.list()).toEqual([]);
});

test("a host that is too busy to answer refuses nothing: the entry is tried again", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  rig.answer = () => {
    throw new AccelError("VIEWSET_PROBE_LATE", "busy");
  };
  await expect(rig.apply("viewset.activated", activated(domain, "two"), 2)).rejects.toMatchObject({
    code: "VIEWSET_PROBE_LATE",
    retryable: true,
  });
  expect(rig.books.of(domain).quarantined).toEqual([]);
  expect(inForce(rig)).toBe(digestOf("one"));
});

/** The index of version two is damaged on this disk until it was fetched again so many times. */
function damagedIndex(rig: Rig, times: number): void {
  const page = { path: "index.html", sha256: digestOf("page"), size: 4, mime: "text/html" };
  rig.tables.set(digestOf("two"), encodeManifestTable([page]));
  const drops = (): number =>
    rig.steps.filter((step) => step === `drop ${digestOf("page")}`).length;
  rig.answer = () => {
    if (rig.staged?.domains[0]?.manifest !== digestOf("two")) return undefined;
    return drops() < times
      ? { kind: "damaged" }
      : { kind: "file", digest: digestOf("page"), size: 4 };
  };
}

test("what is damaged on this disk is fetched again, and then the version comes into force", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  damagedIndex(rig, 1);
  rig.steps.length = 0;
  expect((await rig.apply("viewset.activated", activated(domain, "two"), 2)).phase).toBe("applied");
  expect(inForce(rig)).toBe(digestOf("two"));
  expect(rig.steps.filter((step) => /^(?:prepare|drop|stage|flip)/.test(step))).toEqual([
    "prepare",
    "stage",
    `drop ${digestOf("page")}`,
    "prepare",
    "stage",
    "flip",
  ]);
  expect(rig.books.of(domain).quarantined).toEqual([]);
});

test("what is damaged is gone from this disk before it is fetched again", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  damagedIndex(rig, 1);
  const [dropping, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  rig.hold = async (name) => {
    if (!name.startsWith("drop")) return;
    dropping.resolve();
    await held.promise;
  };
  rig.steps.length = 0;
  const applied = rig.apply("viewset.activated", activated(domain, "two"), 2);
  await dropping.promise;
  // Whatever is ready to run has run.
  await new Promise((resolve) => setImmediate(resolve));
  expect(rig.steps).toEqual(["prepare", "stage", `drop ${digestOf("page")}`]);
  held.resolve();
  expect((await applied).phase).toBe("applied");
});

test("where it cannot be fetched again the old version serves, and the same entry is tried later", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  damagedIndex(rig, 1);
  let prepared = 0;
  rig.hold = async (name) => {
    if (name === "prepare" && ++prepared === 2) throw new AccelError("CENTRAL_UNREACHABLE", "down");
  };
  const two = activated(domain, "two");
  await expect(rig.apply("viewset.activated", two, 2)).rejects.toMatchObject({ retryable: true });
  expect(inForce(rig)).toBe(digestOf("one"));
  expect((await rig.apply("viewset.activated", two, 2)).phase).toBe("applied");
});

test("what is damaged again at once is told, and not tried for ever", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  damagedIndex(rig, 2);
  expect(await rig.apply("viewset.activated", activated(domain, "two"), 2)).toMatchObject({
    phase: "refused",
    detail: { code: "VIEWSET_PROBE_FAILED", reason: expect.stringContaining("is damaged") },
  });
  expect(inForce(rig)).toBe(digestOf("one"));
});

test("what fails only for a moment is no fault", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  let asked = 0;
  rig.answer = () => (asked++ === 0 ? { kind: "failed", reason: "EMFILE" } : undefined);
  expect((await rig.apply("viewset.activated", activated(domain, "two"), 2)).phase).toBe("applied");
  expect(asked).toBe(2);
});

test("what answers as it should is asked once", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  const asked: number[] = [];
  const fault = await findFault(domain, rig.served, async (probes) => {
    asked.push(probes.length);
    return [probes.map(() => ({ kind: "none" }))];
  });
  expect({ fault, asked }).toEqual({ fault: undefined, asked: [1] });
});

test("an operator goes back: pinned, told to central, kept over restarts and repeated wishes", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one", "two");
  const { activations } = rig.ports;
  expect(await activations.rollBack(domain, undefined, never)).toMatchObject({
    viewset_name: "one",
  });
  expect(inForce(rig)).toBe(digestOf("one"));
  const serving = { manifest: digestOf("one"), viewset_id: 7, viewset_name: "one" };
  const reason = 'an operator pinned this host to "one"';
  const detail = { reason, pinned: true, serving };
  expect(corrections(disk)).toEqual([[2, "refused", { ...detail, correction: 1 }]]);
  expect(rig.corrected).toBe(1);
  expect(rig.health.list()).toMatchObject([{ code: "viewset_pinned", severity: "warning" }]);
  // There is no version before the first, and the one that was left is not gone back to by itself.
  await expect(activations.rollBack(domain, undefined, never)).rejects.toMatchObject({
    code: "NOT_FOUND",
    message: "no version to go back to is kept on this host",
  });

  const next = await new Rig(disk).boot();
  expect(inForce(next)).toBe(digestOf("one"));
  expect(await next.apply("viewset.activated", activated(domain, "two"), 3)).toEqual({
    phase: "refused",
    detail,
  });
  expect(inForce(next)).toBe(digestOf("one"));

  // Another wish lifts it.
  await next.apply("viewset.activated", activated(domain, "three"), 4);
  expect(inForce(next)).toBe(digestOf("three"));
  expect(next.books.of(domain).pin).toBeNull();
  expect(next.health.list()).toEqual([]);
});

test("an operator names the version; what is not kept cannot be gone back to", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one", "two", "three");
  const { activations } = rig.ports;
  for (const said of ["one", digestOf("two").slice(0, 12), "7"])
    await activations.rollBack(domain, said, never);
  expect(inForce(rig)).not.toBe(digestOf("three"));
  await expect(activations.rollBack(domain, "four", never)).rejects.toMatchObject({
    code: "NOT_FOUND",
  });
  await expect(activations.rollBack("b.example", undefined, never)).rejects.toMatchObject({
    code: "NOT_FOUND",
  });
});

test("an operator has what central wants tried again: pin and quarantine are lifted, central is told", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  failing(rig, "two");
  await rig.apply("viewset.activated", activated(domain, "two"), 2);
  const { activations } = rig.ports;
  await expect(activations.retry(domain, never)).rejects.toMatchObject({
    code: "VIEWSET_PROBE_FAILED",
  });
  expect(inForce(rig)).toBe(digestOf("one"));
  rig.answer = () => undefined;
  await activations.retry(domain, never);
  expect(inForce(rig)).toBe(digestOf("two"));
  expect(rig.books.of(domain)).toMatchObject({ pin: null, quarantined: [] });
  expect(corrections(disk).at(-1)).toEqual([
    2,
    "applied",
    { manifest: digestOf("two"), viewset_id: 7, correction: 2 },
  ]);
  expect(rig.trials.at(-1)).toEqual([domain, digestOf("two")]);
  // Central wants what an operator went back to: no pin is needed.
  await activations.rollBack(domain, "one", never);
  await rig.apply("viewset.activated", activated(domain, "one"), 3);
  expect(rig.books.of(domain).pin).toBeNull();
  await expect(activations.retry("b.example", never)).rejects.toMatchObject({ code: "NOT_FOUND" });
});

test("a pinned version that an operator tries again and that fails is quarantined, and central is told why", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one", "two");
  const { activations } = rig.ports;
  await activations.rollBack(domain, "one", never);
  failing(rig, "two");
  rig.nowMs = 5_000;
  await expect(activations.retry(domain, never)).rejects.toMatchObject({
    code: "VIEWSET_PROBE_FAILED",
  });
  expect(rig.books.of(domain).quarantined).toMatchObject([
    {
      manifest: digestOf("two"),
      code: "VIEWSET_PROBE_FAILED",
      reason: "a.example /: EIO",
      at: "1970-01-01T00:00:05.000Z",
      entry: { epoch, seq: 2 },
    },
  ]);
  expect(inForce(rig)).toBe(digestOf("one"));
  expect(rig.corrected).toBe(2);
  expect(corrections(disk)).toMatchObject([
    [2, "refused", { pinned: true, correction: 1 }],
    [2, "failed", { reason: "a.example /: EIO", code: "VIEWSET_PROBE_FAILED", correction: 2 }],
  ]);
});

test("a pin that is set while its version is fetched again is obeyed", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one", "two");
  const held = Promise.withResolvers<void>();
  let isHeld = false;
  rig.hold = async (name) => {
    if (name !== "prepare" || isHeld) return;
    isHeld = true;
    await held.promise;
  };
  const again = rig.apply("viewset.activated", activated(domain, "two"), 3);
  await until("it is fetched", () => isHeld);
  await rig.ports.activations.rollBack(domain, "one", never);
  held.resolve();
  expect(await again).toMatchObject({ phase: "refused", detail: { pinned: true } });
  expect(inForce(rig)).toBe(digestOf("one"));
});

test("unlinked, a domain leaves nothing of its versions behind", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one", "two");
  await rig.ports.activations.rollBack(domain, undefined, never);
  const standings = async (): Promise<unknown> => {
    const metric = await rig.registry.getSingleMetric("accel_agent_viewset_standing")?.get();
    return metric?.values.flatMap(({ labels, value }) => (value > 0 ? [labels["standing"]] : []));
  };
  expect(await standings()).toEqual(["pinned"]);
  // Of a file that this disk lost.
  for (const code of ["viewset_damaged", "viewset_incomplete", "viewset_failing"] as const)
    rig.health.raise(code, "error", "", "", domain);
  await rig.apply("domains.changed", domainsChanged({}), 3);
  expect(rig.books.domains()).toEqual([]);
  expect(rig.health.list()).toEqual([]);
  expect(await standings()).toEqual([]);
});

test("of entries of another journal central is told nothing", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one", "two");
  disk.db.ledger.restart({
    epoch: "f".repeat(16),
    seq: 0,
    chain: digestOf("other"),
    receipt: undefined,
    imports: [],
  });
  await rig.ports.activations.rollBack(domain, undefined, never);
  expect(corrections(disk)).toEqual([]);
});

test("a version that one release could not read is tried by another; what failed its probes is not", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  const refuse = async (name: string, no: number, by: Rig): Promise<unknown> =>
    (await by.apply("viewset.activated", activated(domain, name), no)).detail["code"];
  const lasting = new AccelError("VIEWSET_INVALID", "manifest: no such member");
  rig.hold = async (name) => {
    if (name === "prepare") throw Object.assign(lasting, { isLasting: true });
  };
  expect(await refuse("two", 2, rig)).toBe("VIEWSET_INVALID");
  rig.hold = async () => undefined;
  failing(rig, "three");
  expect(await refuse("three", 3, rig)).toBe("VIEWSET_PROBE_FAILED");
  expect(await refuse("two", 4, rig)).toBe("VIEWSET_QUARANTINED");

  const same = await new Rig(disk, rig.central).boot();
  expect(await refuse("two", 5, same)).toBe("VIEWSET_QUARANTINED");
  const upgraded = await new Rig(disk, rig.central, "1.0.1").boot();
  expect(await refuse("three", 6, upgraded)).toBe("VIEWSET_QUARANTINED");
  const two = await upgraded.apply("viewset.activated", activated(domain, "two"), 7);
  expect(two.phase).toBe("applied");
  expect(upgraded.books.of(domain).quarantined).toMatchObject([{ viewset_name: "three" }]);
});

test("its room is held until the version is in force, and given back then or when it fails", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  const rooms: unknown[] = [];
  rig.onStep = (_, name) => {
    if (name === "stage" || name === "put done") rooms.push([name, rig.rooms]);
  };
  await rig.apply("viewset.activated", activated(domain, "two"), 2);
  expect(rooms).toEqual([
    ["stage", 1],
    ["put done", 1],
  ]);
  expect(rig.rooms).toBe(0);
  failing(rig, "three");
  expect((await rig.apply("viewset.activated", activated(domain, "three"), 3)).phase).toBe(
    "refused",
  );
  expect(rig.rooms).toBe(0);
});

test("what the rules of a newer release refuse is not activated; in force, or gone back to, it stays as it was taken", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one", "two");
  rig.outdated.add(digestOf("one")).add(digestOf("two"));
  expect((await rig.apply("viewset.activated", activated(domain, "two"), 3)).phase).toBe("applied");
  const objections = { code: "viewset_objections", severity: "warning" };
  expect(rig.health.list()).toMatchObject([objections]);
  await rig.ports.activations.rollBack(domain, "one", never);
  expect(inForce(rig)).toBe(digestOf("one"));
  await expect(rig.ports.activations.retry(domain, never)).rejects.toMatchObject({
    code: "VIEWSET_INVALID",
  });
  await rig.apply("viewset.activated", activated(domain, "three"), 4);
  expect(rig.health.list()).toEqual([]);
  expect(await rig.apply("viewset.activated", activated(domain, "two"), 5)).toMatchObject({
    phase: "refused",
    detail: { code: "VIEWSET_INVALID" },
  });
});

test.each([
  ["a defect", new Error("uv_interface_addresses returned Unknown system error 97"), "INTERNAL"],
  ["a damaged transfer", new AccelError("BLOB_MISMATCH", "another digest"), "BLOB_MISMATCH"],
])(
  "an activation that fails by %s is a warning with its words, until a version serves",
  async (_, fault, code) => {
    using disk = new Disk();
    const rig = await rigWith(disk, "one");
    rig.hold = async (name) => {
      if (name === "prepare") throw fault;
    };
    const two = activated(domain, "two");
    await expect(rig.apply("viewset.activated", two, 2)).rejects.toBe(fault);
    const text = `version "two" of ${domain} is not served on this host, "one" is: ${fault.message}`;
    const warning = { code: "viewset_not_served", severity: "error", text };
    expect(rig.health.list()).toMatchObject([warning]);
    expect(rig.books.of(domain).wish).toMatchObject({
      viewset_name: "two",
      entry: { epoch, seq: 2 },
      failed: { reason: fault.message, code },
    });

    // After a restart it is still known, and an operator can try it again.
    const next = await new Rig(disk).boot();
    next.releases.tell(domain, next.books.of(domain));
    expect(next.health.list()).toMatchObject([warning]);
    await next.ports.activations.retry(domain, never);
    expect(inForce(next)).toBe(digestOf("two"));
    expect(next.health.list()).toEqual([]);
    expect(next.books.of(domain).wish).not.toHaveProperty("failed");
  },
);

test("what is refused and may pass is a warning, too; what was broken off is none", async () => {
  using disk = new Disk();
  const rig = await rigWith(disk, "one");
  rig.hold = async (name) => {
    if (name === "prepare") throw new AccelError("VIEWSET_TOO_LARGE", "it needs 3 GB");
  };
  expect(await rig.apply("viewset.activated", activated(domain, "two"), 2)).toMatchObject({
    phase: "refused",
  });
  expect(rig.health.list()).toMatchObject([
    { code: "viewset_not_served", text: expect.stringContaining('"one" is: it needs 3 GB') },
  ]);
  rig.hold = async () => undefined;
  await rig.apply("viewset.activated", activated(domain, "one"), 3);
  expect(rig.health.list()).toEqual([]);

  const ending = new AbortController();
  rig.hold = async (name) => {
    if (name !== "prepare") return;
    ending.abort();
    throw new AccelError("CENTRAL_UNREACHABLE", "broken off");
  };
  const { activations } = rig.ports;
  const wish = activated(domain, "three");
  await expect(activations.activate(wish, { epoch, seq: 4 }, ending.signal)).rejects.toThrow();
  expect(rig.health.list()).toEqual([]);
});
