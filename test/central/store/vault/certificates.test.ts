// Certificates of a site that has no vault: its secret does not open, so it never got a key.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CustomerStore } from "../../../../src/central/store/engine/customer-store.ts";
import { openStore } from "../../../../src/central/store/engine/database.ts";
import { sealer, seedSite } from "../../../support/agent-side.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { listCertificates } from "../../../../src/central/store/vault/certificates.ts";

test("a site without a vault lists no certificates", async () => {
  using dir = tempDir();
  const now = (): Date => new Date("2031-05-06T07:08:09.010Z");
  await using store = await openStore(join(dir.path, "central.db"), now);
  const { siteId } = await seedSite(store);
  expect(await store.selectFrom("vaults").selectAll().execute()).toEqual([]);
  const customers = new CustomerStore({ store, sealer, now, randomBytes });
  const listed = await customers.transact(async (work) =>
    listCertificates(work, siteId, { after: 0, limit: 10 }),
  );
  expect(listed).toEqual([]);
});
