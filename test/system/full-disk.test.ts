// The state directory on a small file system of its own that others fill: room is kept for records and the journal, the cache gives way, and a clear needs no free byte.

import { chmodSync, chownSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { domain, logsOf } from "../support/customer-script.ts";
import { DamageRig } from "../support/damage-rig.ts";
import { canMountDisks, SmallDisk } from "../support/small-disk.ts";
import { until } from "../support/until.ts";

const mib = 2 ** 20;
const provided = test.skipIf(!canMountDisks);

/** An edge whose agent has such a disk for its state. */
const onDisk =
  (disk: SmallDisk) =>
  (rig: DamageRig): void => {
    disk.mount(join(rig.edge.dir, "agent"));
    rig.defer(() => disk.unmount());
    rig.edge.changeAgentSettings({
      cache: { disk_max: "128MiB", disk_free_min: "48MiB" },
      spool: { max: "16MiB" },
    });
  };

/** As Prometheus reads it. */
async function withheldBytes({ edge }: DamageRig): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${edge.ports.metrics}/metrics/deployment`);
  const [, value] =
    /^accel_agent_cache_withheld_bytes(?:\{[^}]*\})? (\S+)$/m.exec(await answer.text()) ?? [];
  return Number(value);
}

type Proof = { readonly deployments: readonly { readonly state: string }[] };

/** The site changes and central is asked to clear it: applied on the agent, or this throws. */
async function clearedByCentral(rig: DamageRig): Promise<number> {
  const generation = ++rig.generation;
  const { api } = rig.edge;
  const asked = await api.post(`/clear-accelerator-cache/${domain}/`, {
    url_path_patterns: ["path:damage"],
  });
  expect(asked.status).toBeLessThan(300);
  const { clear_id: id } = asked.body as { clear_id: string };
  await until("central has the receipt", async () => {
    const { body } = await api.get(`/clear-accelerator-cache/${domain}/${id}/`);
    return (body as Proof).deployments.every(({ state }) => state === "applied");
  });
  return generation;
}

provided(
  "others fill the disk: the cache gives way, clears are applied without a free byte, a kill changes nothing",
  async () => {
    using disk = new SmallDisk("256M");
    await using rig = await DamageRig.start(onDisk(disk));
    const pages = Array.from({ length: 1_500 }, (_, no) => `/damage/p${2 * no + 1}`);
    const cachedBytes = async (): Promise<number> =>
      ((await rig.control("cache-stats")) as { bytes: number }).bytes;
    for (let at = 0; at < pages.length; at += 50)
      await Promise.all(
        pages.slice(at, at + 50).map((path) => rig.edge.visit(path, { host: domain })),
      );
    await until("the cache is large", async () => (await cachedBytes()) > 60 * mib);

    disk.fill(20 * mib);
    // What the agent says is what the disk lacks: of 128 MiB it may use what it has, what it could write into, and nothing more. It looks once a second. A WAL that gets
    // shorter gives back up to 32 MiB at once, before a single entry went; others take that, too.
    await until("the cache has made room, and says what it may not use", async () => {
      const withheld = await withheldBytes(rig);
      if (disk.free > 50 * mib) disk.fill(48 * mib);
      return disk.free >= 47 * mib && withheld > 32 * mib && withheld < 128 * mib;
    });
    expect(await cachedBytes()).toBeGreaterThan(10 * mib);
    await rig.visitAll();
    expect(await rig.control("cache-check")).toMatchObject({ ok: true });

    // Faster than it can: not a byte is left.
    disk.fill(0);
    const [cleared] = await Promise.all([clearedByCentral(rig), rig.visitAll()]);
    disk.fill(0);
    await rig.visitAll(cleared);
    await rig.edge.agent.kill();
    disk.fill(0);
    await rig.edge.agent.restart();
    for (let round = 0; round < 2; round++) await rig.visitAll(cleared);
    disk.fill(0);
    const again = await clearedByCentral(rig);
    await rig.visitAll(again);
    await rig.warned(/disk_low/);

    disk.clean();
    expect((await rig.warnings()).filter((one) => one.startsWith("disk_low"))).toEqual([]);
    await rig.filled(again);
    await until(
      "nothing is wrong any more",
      // That it was killed is told for an hour.
      async () => (await rig.warnings()).every((one) => one.startsWith("unclean_end")),
      90_000,
    );
    expect(await rig.control("cache-check")).toMatchObject({ ok: true });
    // The warning is as fresh as the question, the metric up to a second old.
    await until("/metrics says so, too", async () => (await withheldBytes(rig)) === 0);
  },
  300_000,
);

/** The records of the domain that central has. */
async function recordsAtCentral({ edge, siteId }: DamageRig): Promise<number> {
  const { status, body } = await edge.api.get(
    `/incominglogs/?domain=${domain}&deployment_id=${siteId}&limit=1000`,
  );
  expect(status).toBe(200);
  return logsOf(body).length;
}

const allAtCentral = async (rig: DamageRig): Promise<unknown> =>
  until(
    "central has every record",
    async () => (await recordsAtCentral(rig)) === rig.visits,
    60_000,
  );

const roomIsKept = async (disk: SmallDisk): Promise<unknown> =>
  until("room is kept", () => readdirSync(join(disk.at, "spool/room")).length === 64, 60_000);

/** The sums of all lanes since the state began, as Prometheus reads them. */
async function lostOnHost({ edge }: DamageRig): Promise<readonly string[]> {
  const answer = await fetch(`http://127.0.0.1:${edge.ports.metrics}/metrics/deployment`);
  const lost = /^accel_agent_log_records_dropped_total\{.*\} [1-9].*$/gm;
  return (await answer.text()).match(lost) ?? [];
}

/** Somebody who is not root, as the unit's user is: blocks that are freed are root's first where root has used what is kept for it. */
const nobody = 65_534;
const asNobody = ["setpriv", `--reuid=${nobody}`, `--regid=${nobody}`, "--clear-groups"];

provided(
  "no byte is free, not even root's: visitors are served over ends and kills, clears are receipted, no record is lost",
  async () => {
    using disk = new SmallDisk("256M", { reserved: 5, blockBytes: 1_024 });
    await using rig = await DamageRig.start((early) => {
      onDisk(disk)(early);
      chmodSync(early.edge.dir, 0o711);
      for (const path of [disk.at, join(early.edge.dir, "secret16")])
        chownSync(path, nobody, nobody);
    }, asNobody);
    await rig.filled();
    await roomIsKept(disk);
    const { visits: before } = rig;
    disk.fill("for nobody");
    for (const end of ["terminate", "kill", "terminate"] as const) {
      for (let round = 0; round < 3; round++) {
        await rig.visitAll();
        disk.fill("for nobody");
      }
      const cleared = await clearedByCentral(rig);
      await rig.visitAll(cleared);
      // A kill may cost what was in memory.
      await allAtCentral(rig);
      await rig.edge.agent[end]();
      disk.fill("for nobody");
      await rig.edge.agent.restart();
      for (let round = 0; round < 2; round++) await rig.visitAll(cleared);
    }
    expect(rig.visits - before).toBeGreaterThan(400);
    await allAtCentral(rig);
    expect(await lostOnHost(rig)).toEqual([]);
    await rig.warned(/disk_low/);
  },
  300_000,
);

provided(
  "no more files can be made: visitors are served over ends and kills, clears are receipted, no record is lost",
  async () => {
    using disk = new SmallDisk("256M", { files: 1_024 });
    await using rig = await DamageRig.start(onDisk(disk));
    await rig.filled();
    await roomIsKept(disk);
    disk.fillNames();
    for (const end of ["terminate", "kill", "terminate"] as const) {
      await rig.visitAll();
      disk.fillNames();
      const cleared = await clearedByCentral(rig);
      await rig.visitAll(cleared);
      await allAtCentral(rig);
      await rig.edge.agent[end]();
      disk.fillNames();
      await rig.edge.agent.restart();
      for (let round = 0; round < 2; round++) await rig.visitAll(cleared);
    }
    await allAtCentral(rig);
    expect(await lostOnHost(rig)).toEqual([]);
    await rig.warned(/disk_low.*more files/);
  },
  300_000,
);

provided(
  "the disk turns read-only, as after an error: visitors are answered, nothing stale is served, a start says what is wrong",
  async () => {
    using disk = new SmallDisk("256M");
    await using rig = await DamageRig.start(onDisk(disk));
    await rig.filled();
    disk.break();
    await rig.visitAll();
    const generation = ++rig.generation;
    const told = await rig
      .control("cache-clear", { domain, patterns: ["path:damage"], dry_run: false })
      .then(() => "", String);
    expect(told).toMatch(/agent\.db could not record it/);
    for (let round = 0; round < 2; round++) await rig.visitAll(generation);
    await rig.warned(/cache_closed|cache_not_stored/);
    await rig.edge.agent.kill();
    await expect(rig.edge.agent.restart()).rejects.toThrow();
    expect(readFileSync("/proc/mounts", "utf8")).toContain(disk.at);
  },
  300_000,
);
