// Two customers with channels; ada has two domains on a deployment, and two subscribers to alerts, one of whom pauses those of slow backends.

import { evaluateAlerts } from "../../src/central/alerting.ts";
import {
  slowBackendType as slow,
  unreachableBackendType as unreachable,
} from "../../src/wire/customer/notifications.ts";
import type { NoticeRig } from "./notice-rig.ts";
import { addSubscription, endSubscription } from "../../src/central/store/notices/subscriptions.ts";
import { chatChannels, emailChannels } from "../../src/central/store/notices/monitor-channels.ts";

export async function alertScene(rig: NoticeRig) {
  const ada = await rig.customer("ada");
  const eve = await rig.customer("eve");
  const siteId = await rig.site(ada);
  await rig.domain(ada, "www.example.test", siteId);
  await rig.domain(ada, "shop.example.test", siteId);
  await rig.hello(siteId);
  const { customerId } = ada;
  await rig.run(async (work) => {
    for (const [owner, name] of [
      [ada, "ops"],
      [eve, "eve"],
    ] as const) {
      const hook = { chat_channel_name: "#x", chat_hook_url: `https://hook.example/${name}` };
      await chatChannels(work).create(owner.customerId, { monitor_uid: name, ...hook }, 9);
      await emailChannels(work).create(owner.customerId, { monitor_uid: `${name}-mail` }, 9);
    }
    for (const type of [slow, unreachable])
      for (const email of ["a@x.org", "b@x.org"])
        await addSubscription(work, { customerId, channel: "monitor", type, email }, 99);
    const paused = { customerId, channel: "monitor", type: slow, email: "b@x.org" } as const;
    await endSubscription(work, paused, false);
  });
  return { siteId, ada };
}

/** What is told now, in one line each. */
export async function evaluate(rig: NoticeRig): Promise<readonly string[]> {
  while (await evaluateAlerts(rig.deps));
  const sent = await rig.messages();
  return sent.map((one) =>
    one.channel === "mail" ? `${one.to}: ${one.subject}` : `${one.hookUrl}: ${one.text}`,
  );
}
