// Which releases may work on a store that another has brought further.

import { join } from "node:path";
import { Kysely, sql } from "kysely";
import { Migrator } from "kysely/migration";
import { describe, expect, test } from "vitest";
import { openSqlite } from "../../../../src/base/sqlite.ts";
import { newerStep, openStore, storeLevel } from "../../../../src/central/store/engine/database.ts";
import { migrations } from "../../../../src/central/store/engine/migrations.ts";
import { PacedSqliteDialect } from "../../../../src/central/store/engine/paced-dialect.ts";
import {
  contraction,
  expansion,
  firstKept,
  keptSteps,
  type StoreStep,
  type StoreSteps,
} from "../../../../src/central/store/engine/store-steps.ts";
import { bringTo, planted, plantedName } from "../../../support/planted-steps.ts";
import { schemaOf, whatBreaks, type StoreSchema } from "../../../support/store-schema.ts";
import { tempDir } from "../../../support/temp-dir.ts";

const now = (): Date => new Date(0);
const gone = "ALTER TABLE restores DROP COLUMN detail";

/** What this release finds where one with these steps was. */
async function opened(more: StoreSteps, newer: "used" | "refused"): Promise<unknown> {
  using dir = tempDir();
  const path = join(dir.path, "central.db");
  {
    await using store = await openStore(path, now);
    await bringTo(store, more);
  }
  try {
    await using store = await openStore(path, now, { newer });
    return (await newerStep(store)) ?? "of this release";
  } catch (error) {
    return error;
  }
}

const newer = (name: string) => ({
  code: "DATABASE_NEWER",
  message: expect.stringContaining(
    `its schema is at ${name}, and this release knows ${storeLevel}`,
  ),
});

test.each<{ readonly name: string; readonly more: StoreSteps; readonly used: unknown }>([
  { name: "nothing newer", more: {}, used: "of this release" },
  { name: "what only adds", more: planted, used: plantedName },
  {
    name: "what is gone since a step that this release knows",
    more: { "0901-gone": contraction(firstKept, gone) },
    used: "0901-gone",
  },
  {
    name: "what is gone since a step that it does not know",
    more: { ...planted, "0901-gone": contraction(plantedName, gone) },
    used: newer("0901-gone"),
  },
  {
    name: "what needs itself",
    more: { "0901-gone": { ...expansion(gone), needs: "itself" } },
    used: newer("0901-gone"),
  },
])("$name: used by central where that may be, refused by what must know all", async (row) => {
  expect(await opened(row.more, "used")).toEqual(
    typeof row.used === "string" ? row.used : expect.objectContaining(row.used),
  );
  const refused = await opened(row.more, "refused");
  if (row.used === "of this release") expect(refused).toBe(row.used);
  else expect(refused).toMatchObject({ code: "DATABASE_NEWER" });
});

test("a step that is newer and says nothing of itself is refused, and so is a store that lacks one of ours", async () => {
  using dir = tempDir();
  for (const [no, statement] of [
    "INSERT INTO kysely_migration (name, timestamp) VALUES ('0900-silent', '2099-01-01')",
    `DELETE FROM kysely_migration WHERE name = '0001-people'`,
  ].entries()) {
    const path = join(dir.path, `${no}.db`);
    {
      await using store = await openStore(path, now);
      await bringTo(store, planted);
      await sql.raw(statement).execute(store);
    }
    const error = await openStore(path, now, { newer: "used" }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "DATABASE_NEWER" });
  }
});

describe("steps of this release", () => {
  const steps: readonly (readonly [string, StoreStep])[] = Object.entries(migrations);
  const kept = steps.filter(([name]) => name >= firstKept);

  test("each from the first that is kept on is an expansion, or a contraction of what is unused since a step of before", () => {
    expect(kept.length).toBeGreaterThan(0);
    for (const [name, { needs }] of kept) {
      const since = typeof needs === "string" ? needs : needs.step;
      if (since === "nothing") continue;
      // "itself" would stop every central of the release before while this one is started.
      expect([name, steps.map(([known]) => known)]).toEqual([
        name,
        expect.arrayContaining([since]),
      ]);
      expect([name, since < name]).toEqual([name, true]);
    }
  });

  /** Does the step to a store of the release before, and says what that release would meet. */
  async function brokenBy(name: string, step: StoreStep): Promise<readonly string[]> {
    using dir = tempDir();
    const sqlite = openSqlite(join(dir.path, "central.db"), { sync: "full" });
    const store = new Kysely<unknown>({ dialect: new PacedSqliteDialect({ database: sqlite }) });
    try {
      const bring = async (all: StoreSteps): Promise<StoreSchema> => {
        const migrator = new Migrator({ db: store, provider: keptSteps(all) });
        const { error } = await migrator.migrateToLatest();
        if (error !== undefined) throw new Error(name, { cause: error });
        return schemaOf(sqlite);
      };
      const known = Object.fromEntries(steps.filter(([one]) => one < name));
      const before = await bring(known);
      return whatBreaks(before, await bring({ ...known, [name]: step }));
    } finally {
      await store.destroy();
    }
  }
  test.each(kept.filter(([, { needs }]) => needs === "nothing"))(
    "%s only adds",
    async (name, step) => {
      expect(await brokenBy(name, step)).toEqual([]);
    },
  );

  test.each([
    [gone, ["restores.detail is gone"]],
    ["ALTER TABLE restores RENAME COLUMN cause TO why", ["restores.cause is gone"]],
    ["DROP TABLE image_days", ["image_days is gone"]],
    ["CREATE UNIQUE INDEX one ON users (email)", ["users must be unique by email"]],
    [
      "CREATE TABLE holds (id $id, user_id integer NOT NULL REFERENCES users (id))",
      ["holds holds rows of users: NO ACTION"],
    ],
    ["ALTER TABLE users ADD COLUMN more text NOT NULL DEFAULT 'x'", []],
  ])("what breaks is seen: %s", async (statement, broken) => {
    expect(await brokenBy("0902-planted", expansion(statement))).toEqual(broken);
  });
});
