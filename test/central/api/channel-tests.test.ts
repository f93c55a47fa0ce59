// Trying out a channel of alerts: whose it is, what is passed on, how often, and what is refused.

import { expect, test } from "vitest";
import { at } from "../../support/api-contract.ts";
import { makeWorld } from "../../support/api-world.ts";
import { openApi, type Reply } from "./api-harness.ts";

test("each kind is tried out at its own path, at most five times a minute a channel, by those who see it", async () => {
  await using api = await openApi();
  const [world, other] = [await makeWorld(api, "tester"), await makeWorld(api, "other")];
  const chatId = world.slots["chat:channel_id"] ?? "";
  const mailId = world.slots["email:channel_id"] ?? "";
  const ask = async (kind: string, id: string, token = world.token): Promise<Reply> =>
    api.call("POST", `/monitor-notification-channel/${kind}/${id}/test/`, { token });
  const reply = await ask("chat", chatId);
  expect([reply.status, reply.body]).toEqual([200, { queued: true, messages: 1 }]);
  expect((await ask("email", mailId)).status).toBe(200);
  const asked = { customerId: Number(world.slots["customer_id"]), username: "tester" };
  const uid = world.slots["monitor_uid"];
  const hookUrl = "https://chat.example.com/hooks/tester";
  expect(api.channelTests.asked).toEqual([
    { ...asked, uid, id: Number(chatId), hookUrl },
    { ...asked, uid },
  ]);

  expect((await ask("chat", chatId, other.token)).status).toBe(404);
  expect((await ask("chat", "900000")).status).toBe(404);
  const made = await api.call("POST", "/tokens/", {
    token: world.token,
    body: { name: "looks", role: "read" },
  });
  expect((await ask("chat", chatId, String(at(made.body, "token")))).status).toBe(403);
  expect(api.channelTests.asked).toHaveLength(2);

  for (let no = 0; no < 4; no++) expect((await ask("chat", chatId)).status).toBe(200);
  const tooOften = await ask("chat", chatId);
  expect([tooOften.status, tooOften.headers["retry-after"]]).toEqual([429, "12"]);
  // One of several centrals allows its share alone, so it does not say that five were made.
  expect(at(tooOften.body, "detail")).toMatch(/just now, as often as is allowed: up to 5 times/);
  expect((await ask("email", mailId)).status).toBe(200);
  api.clock = new Date(api.clock.getTime() + 12_000);
  expect((await ask("chat", chatId)).status).toBe(200);

  api.channelTests.outcome = { kind: "nobody" };
  expect((await ask("email", mailId)).status).toBe(409);
  api.channelTests.outcome = { kind: "limited" };
  expect((await ask("email", mailId)).status).toBe(429);
  const [line] = await api.store
    .selectFrom("audit")
    .select(["action", "who"])
    .where("action", "like", "%/test/")
    .limit(1)
    .execute();
  expect(line).toEqual({
    action: "POST /monitor-notification-channel/chat/:channel_id/test/",
    who: "tester",
  });
});
