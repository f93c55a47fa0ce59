// What hosts reported of spent image variants, in the store, to a mail server: once, and also where two centrals look at the same moment.

import { expect, test } from "vitest";
import { openNotices } from "../../../src/central/notices.ts";
import { sendEvents } from "../../../src/central/reporting.ts";
import { startMailServer } from "../../support/mail-server.ts";
import { openNoticeRig } from "../../support/notice-rig.ts";
import { reportScene, subscribe } from "../../support/report-scene.ts";

test("two that look at once send one mail, which arrives", async () => {
  await using mails = await startMailServer();
  const settings = `mail:\n  server: smtp://127.0.0.1:${mails.port}\n  starttls: never\n  from: a@c.example\n`;
  await using rig = await openNoticeRig(settings);
  const { ada, siteId } = await reportScene(rig);
  const type = "send_email_to_customer_about_domain_images_optimization_blocked_for_today";
  await subscribe(rig, ada.customerId, type);
  const variants = { made: 2, blocked: 6 };
  for (const host of ["host-one", "host-two"])
    await rig.report(siteId, { "www.example.test": { variants } }, [], host);
  await Promise.all([sendEvents(rig.deps), sendEvents(rig.deps)]);
  await rig.report(siteId, { "shop.example.test": { variants } }, [], "host-one");
  {
    await using _ = await openNotices({ ...rig.deps, ...rig.ground });
    await mails.waitFor(2);
  }
  const texts = mails.received.map(({ mail }) => mail.text ?? "");
  expect(texts.filter((text) => /www\.example\.test +2031-05-06 +4 +12/.test(text)).length).toBe(1);
  expect(texts.filter((text) => /shop\.example\.test +2031-05-06 +2 +6/.test(text)).length).toBe(1);
  expect(texts.length).toBe(2);
});
