// A state directory in which a newer release was: what this one does with a schema that it may use, and with one that it may not. The site is served, nothing
// stale is, no request record is lost, and the newer release could go on.

import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { agentSchema } from "../../src/agent/link/agent-db.ts";
import { openSqlite } from "../../src/base/sqlite.ts";
import { browser } from "../support/edge.ts";
import { domain } from "../support/customer-script.ts";
import { DamageRig } from "../support/damage-rig.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

let rig: DamageRig;
let visits = 0;
beforeEach(async () => {
  rig = await DamageRig.start();
  visits = 0;
  await until("all pages are hits", async () => (await visitAll()) === 24, 60_000);
});
afterEach(async () => rig[Symbol.asyncDispose]());

async function visitAll(oldest = 0): Promise<number> {
  const hits = await rig.visitAll(oldest);
  visits += 24;
  return hits;
}

const path = (name: string): string => join(rig.edge.dir, "agent", name);

function change(file: string, sql: string): void {
  const db = openSqlite(file, { sync: "full" });
  db.exec(sql);
  db.close();
}

/** The request records that central has, by their lanes' numbers, and the gaps that it was told of. */
function atCentral(): { readonly records: number; readonly gaps: number } {
  const sum = (sql: string): number =>
    globSync("*.db", { cwd: join(rig.edge.dir, "central/logs") }).reduce((total, name) => {
      const db = openSqlite(join(rig.edge.dir, "central/logs", name), {
        sync: "normal",
        readonly: true,
      });
      try {
        return total + Number(db.prepare(sql).pluck().get());
      } finally {
        db.close();
      }
    }, 0);
  return {
    records: sum("SELECT count(*) FROM record WHERE line LIKE '%/damage/%'"),
    gaps: sum("SELECT count(*) FROM gap"),
  };
}

/** The agent is stopped as an update stops it, with records that central does not have; then both start. */
async function restartedWithout(plant: () => void): Promise<void> {
  await rig.edge.central.terminate();
  await visitAll();
  expect(await rig.edge.agent.terminate()).toBe(0);
  plant();
  await rig.edge.central.restart();
  await rig.edge.agent.restart();
}

const servedAgain = (oldest: number): Promise<unknown> =>
  until(
    "the site is served",
    async () => {
      const { status } = await rig.edge.visit("/damage/p0", { host: domain, userAgent: browser });
      visits++;
      return status === 200 && (await visitAll(oldest)) >= 0;
    },
    60_000,
  );

const allRecordsArrive = (): Promise<unknown> =>
  until("all records are at central, and no gap", () => {
    const { records, gaps } = atCentral();
    return Promise.resolve(records === visits && gaps === 0);
  });

test("a schema that says it is for this release, too: versions, sets, journal and cache go on", async () => {
  const oldest = await rig.change();
  await until("all pages are hits", async () => (await visitAll(oldest)) === 24, 60_000);
  const instance = await rig.control("status");
  await restartedWithout(() =>
    change(
      path("agent.db"),
      `CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT; PRAGMA user_version = ${agentSchema.version + 1};`,
    ),
  );
  await rig.warned(
    /^state_newer: .*agent\.db has schema version 5 .* this release knows 4: .*may use it/,
  );
  // Visitors of the first moments may come before the index is open.
  await until("all pages are hits", async () => (await visitAll(oldest)) === 24, 60_000);
  expect((await rig.warnings()).filter((text) => text.startsWith("cache_dropped"))).toEqual([]);
  expect(instanceOf(await rig.control("status"))).toBe(instanceOf(instance));
  await visitAll(await rig.change());
  await allRecordsArrive();
  const db = openSqlite(path("agent.db"), { sync: "full", readonly: true });
  expect(db.pragma("user_version", { simple: true })).toBe(agentSchema.version + 1);
  db.close();
});

const instanceOf = (status: unknown): string =>
  (status as { parts: { link: { instance_id: string } } }).parts.link.instance_id;

test("schemas and files that are not for this release: set aside with words, and taken anew; forward again from there", async () => {
  const oldest = await rig.change();
  await restartedWithout(() => {
    change(
      path("agent.db"),
      "UPDATE meta SET value = '7' WHERE key = 'compatible_from'; ALTER TABLE document RENAME TO documents; PRAGMA user_version = 7;",
    );
    change(path("cache/index.db"), "PRAGMA user_version = 99;");
    const marks = `${JSON.stringify({ version: 2, later: true })}\n`;
    const sum = crc32(marks.trim()).toString(16).padStart(8, "0");
    writeFileSync(path("spool/marks"), `${sum}\n${marks}`);
    for (const name of ["vault/keys.json", "secret16.json"])
      writeFileSync(path(name), JSON.stringify({ format: 2, later: true }), { mode: 0o600 });
    writeFileSync(path("vault/tickets.json"), JSON.stringify({ format: 2 }), { mode: 0o600 });
  });
  await rig.warned(
    /^state_newer: .*agent\.db has schema version 7 .* this release knows 4 and may not use it: .*agent\.db\.newer-1/,
  );
  await rig.warned(/^cache_dropped: .*index\.db has shape 99, this release has \d+/);
  await rig.warned(/^spool_damaged: .*marks was written by a newer release and set aside/);
  expect(rig.edge.agent.said).toMatch(/secret16\.json.*was written by a newer release/);
  expect(JSON.parse(readFileSync(path("secret16.json"), "utf8"))).toEqual({
    format: 2,
    later: true,
  });
  await servedAgain(oldest);
  await allRecordsArrive();
  await until("the keys of the site are there again", () =>
    Promise.resolve(
      globSync("keys.json*", { cwd: path("vault") })
        .toSorted()
        .join() === "keys.json,keys.json.corrupt" &&
        readFileSync(path("vault/keys.json"), "utf8").includes('"format":1'),
    ),
  );
  await rig.filled(oldest);
  const later = await rig.change();
  expect(await rig.visitAll(later)).toBeLessThan(24);
  // The newer release finds a file of this one, and brings it to its own schema.
  await rig.restarted(() => undefined);
  expect((await rig.warnings()).filter((text) => text.startsWith("state_newer"))).toEqual([]);
  await rig.filled(later);
});
