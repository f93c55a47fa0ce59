// A customer with a deployment, two domains and a user, in a store that has sent its first reports; and what is due then.

import { expect } from "vitest";
import { sendDueReports } from "../../src/central/reporting.ts";
import type { EmailNotificationType } from "../../src/wire/customer/notifications.ts";
import type { NoticeRig } from "./notice-rig.ts";
import { addSubscription } from "../../src/central/store/notices/subscriptions.ts";

export const day = 86_400_000;
export const running = new AbortController().signal;

export async function subscribe(rig: NoticeRig, customerId: number, type: EmailNotificationType) {
  const key = { customerId, channel: "email", type, email: "ada@x.org" } as const;
  await rig.run(async (work) => addSubscription(work, key, 99));
}

export async function due(rig: NoticeRig) {
  await sendDueReports(rig.deps, running);
  return rig.messages();
}

/** A Tuesday, 07:00; the store has sent its first reports (none). */
export async function reportScene(rig: NoticeRig) {
  expect(await due(rig)).toEqual([]);
  const ada = await rig.customer("ada", "user@x.org");
  const siteId = await rig.site(ada, ["eu", "prod"]);
  await rig.domain(ada, "www.example.test", siteId);
  await rig.domain(ada, "shop.example.test", siteId);
  await rig.hello(siteId, "1.0.0");
  return { ada, siteId };
}

export const subjects = (messages: Awaited<ReturnType<NoticeRig["messages"]>>): readonly string[] =>
  messages.map((one) => (one.channel === "mail" ? `${one.to}: ${one.subject}` : "chat"));
