// Test messages of channels: what they say, to whom they go, and that they leave alerts their turns.

import { expect, test } from "vitest";
import { createChannelTests } from "../../src/central/channel-tests.ts";
import { chatChannels } from "../../src/central/store/notices/monitor-channels.ts";
import { addSubscription } from "../../src/central/store/notices/subscriptions.ts";
import {
  slowBackendType as slow,
  unreachableBackendType as unreachable,
} from "../../src/wire/customer/notifications.ts";
import { openNoticeRig, type NoticeRig } from "../support/notice-rig.ts";

const hookUrl = "https://hook.example/ops";

async function scene(rig: NoticeRig) {
  const ada = await rig.customer("ada");
  const { customerId } = ada;
  const tests = createChannelTests(rig.deps);
  const asked = { customerId, username: "ada\nroot", uid: "ops\u202e" };
  const hook = { monitor_uid: "ops", chat_channel_name: "#x", chat_hook_url: hookUrl };
  const id = await rig.run(async (work) => chatChannels(work).create(customerId, hook, 9));
  const chat = async () =>
    rig.run(async (work) => tests.chat(work, asked, { id: Number(id), hookUrl }));
  const email = async () => rig.run(async (work) => tests.email(work, asked));
  const subscribe = async (type: string, address: string, of = customerId) =>
    rig.run(async (work) =>
      addSubscription(work, { customerId: of, channel: "monitor", type, email: address }, 99),
    );
  return { chat, email, subscribe };
}

test("a chat is told that it is a test, by whom and of which customer, in two lines that cannot be broken", async () => {
  await using rig = await openNoticeRig();
  const { chat } = await scene(rig);
  expect(await chat()).toEqual({ kind: "queued", messages: 1 });
  const [message] = await rig.messages();
  expect(message).toMatchObject({ channel: "chat", hookUrl });
  expect(message?.text).toMatch(
    /^\[ops\] This is a test, not an alert\nAsked for by ada root of .+, 2031-05-06 07:00 UTC\. Alerts of this customer come here\.$/,
  );
});

test("a mail goes to each address that is subscribed to alerts of any type, once, and to nobody else's", async () => {
  await using rig = await openNoticeRig();
  const { email, subscribe } = await scene(rig);
  const eve = await rig.customer("eve");
  await subscribe(slow, "eve@x.org", eve.customerId);
  expect(await email()).toEqual({ kind: "nobody" });
  await subscribe(slow, "a@x.org");
  await subscribe(unreachable, "A@x.org");
  await subscribe(unreachable, "b@x.org");
  expect(await email()).toEqual({ kind: "queued", messages: 2 });
  const sent = await rig.messages();
  expect(sent.map((one) => one.channel === "mail" && [one.to, one.subject])).toEqual([
    ["a@x.org", "[ops] This is a test, not an alert"],
    ["b@x.org", "[ops] This is a test, not an alert"],
  ]);
  const [first] = sent;
  expect(first?.channel === "mail" && first.unsubscribeUrl).toMatch(/^http.*unsubscribe/);
  expect(first?.text).toContain("ada root of");
});

test("tests take half of the turns at most", async () => {
  await using rig = await openNoticeRig("limits:\n  mails_per_address: 6\n");
  const { chat } = await scene(rig);
  const outcomes: string[] = [];
  for (let no = 0; no < 5; no++) outcomes.push((await chat()).kind);
  expect(outcomes).toEqual(["queued", "queued", "queued", "limited", "limited"]);
});
