// Notices of the releases that deployments run: old ones every week, changes as they are seen.

import { expect, test } from "vitest";
import { sendEvents } from "../../src/central/reporting.ts";
import { openNoticeRig, type NoticeRig } from "../support/notice-rig.ts";
import { day, due, reportScene as scene, subjects, subscribe } from "../support/report-scene.ts";
import { sha256Of } from "../../src/core/ids.ts";

async function addPackage(rig: NoticeRig, version: string) {
  const row = { size: 1, sha256: sha256Of(""), stored_as: version, uploaded_by_user_id: 1 };
  await rig.store
    .insertInto("packages")
    .values({ version, version_key: version, file: `x-${version}.whl`, when_created: "", ...row })
    .execute();
}

test("old versions: every week while there is a newer package", async () => {
  await using rig = await openNoticeRig();
  const { ada, siteId } = await scene(rig);
  await subscribe(rig, ada.customerId, "send_email_to_customers_about_old_versions_of_accel_pack");
  rig.later(6 * day);
  expect(await due(rig)).toEqual([]);
  await addPackage(rig, "1.0.0rc1");
  rig.later(7 * day);
  expect(await due(rig)).toEqual([]);
  await addPackage(rig, "1.2.0");
  for (let week = 0; week < 2; week++) {
    rig.later(7 * day);
    expect(subjects(await due(rig))).toEqual([
      "ada@x.org: ada: 1 deployment runs an old accel_pack",
    ]);
  }
  await rig.hello(siteId, "1.2.0");
  rig.later(7 * day);
  expect(await due(rig)).toEqual([]);
});

test("a push: told once when an agent runs another release, not when it is first seen", async () => {
  await using rig = await openNoticeRig();
  const { ada, siteId } = await scene(rig);
  await subscribe(rig, ada.customerId, "send_email_to_customer_about_accel_pack_push");
  const events = async () => {
    await sendEvents(rig.deps);
    return rig.messages();
  };
  expect(await events()).toEqual([]);
  rig.later(1_000);
  await rig.hello(siteId, "1.1.0");
  const [mail] = await events();
  if (mail?.channel !== "mail") throw new Error("no mail");
  expect(mail.subject).toBe("ada: 1 deployment runs another accel_pack");
  expect(mail.text).toMatch(/1\.0\.0 +1\.1\.0/);
  expect(await events()).toEqual([]);
});

test("two live instances on two releases: no push, behind while one of them is; told when one of them changes", async () => {
  await using rig = await openNoticeRig();
  const { ada, siteId } = await scene(rig);
  await subscribe(rig, ada.customerId, "send_email_to_customer_about_accel_pack_push");
  await subscribe(rig, ada.customerId, "send_email_to_customers_about_old_versions_of_accel_pack");
  await addPackage(rig, "1.1.0");
  const seen = async (instance: string, version: string) => {
    const at = rig.clock.now.toISOString();
    const key = { deployment_site_id: siteId, instance_id: instance };
    const columns = { edge: null, applied_seq: 0, last_report: null, logs_confirmed_at: null };
    await rig.store
      .insertInto("instances")
      .values({ ...key, ...columns, agent_version: version, last_seen: at })
      .onConflict((conflict) =>
        conflict
          .columns(["deployment_site_id", "instance_id"])
          .doUpdateSet({ agent_version: version, last_seen: at }),
      )
      .execute();
    await sendEvents(rig.deps);
    rig.later(15_000);
    return subjects(await rig.messages());
  };
  for (let i = 0; i < 5; i++) {
    expect(await seen(`instance-${siteId}`, "1.0.0")).toEqual([]);
    expect(await seen("instance-other", "1.1.0")).toEqual([]);
  }
  rig.later(6 * day);
  await seen(`instance-${siteId}`, "1.0.0");
  await seen("instance-other", "1.1.0");
  expect(subjects(await due(rig))).toEqual(["ada@x.org: ada: 1 deployment runs an old accel_pack"]);
  expect(await seen(`instance-${siteId}`, "1.1.0")).toEqual([
    "ada@x.org: ada: 1 deployment runs another accel_pack",
  ]);
  expect(await seen("instance-other", "1.1.0")).toEqual([]);
  rig.later(7 * day);
  expect(await due(rig)).toEqual([]);
});
