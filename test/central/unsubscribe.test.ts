// Links in mails that were really sent: one click, the page with its choices, and a recovery link's hour.

import { expect, test } from "vitest";
import { listenHttp } from "../../src/base/http-listener.ts";
import { openNotices } from "../../src/central/notices.ts";
import { sendEvents } from "../../src/central/reporting.ts";
import { startMailServer } from "../support/mail-server.ts";
import { openNoticeRig } from "../support/notice-rig.ts";
import { until } from "../support/until.ts";
import { requestRecovery } from "../../src/central/store/people/recovery.ts";
import { addSubscription, endSubscription } from "../../src/central/store/notices/subscriptions.ts";

const type = "send_email_to_customer_about_accel_pack_push";
const base = "http://central.example";

async function open() {
  await using stack = new AsyncDisposableStack();
  const mails = stack.use(await startMailServer());
  const rig = stack.use(
    await openNoticeRig(
      `base_url: ${base}\nmail:\n  server: smtp://127.0.0.1:${mails.port}\n  starttls: never\n  from: a@c.example\n`,
    ),
  );
  const notices = stack.use(await openNotices({ ...rig.deps, ...rig.ground }));
  const asker = { address: "192.0.2.1", requestId: "0123456789abcdef" };
  const { port } = stack.use(
    await listenHttp((request, response) => notices.pages(request, response, asker), {
      host: "127.0.0.1",
      port: 0,
    }),
  );
  const ada = await rig.customer("ada", "ada@x.org");
  const siteId = await rig.site(ada);
  const key = { customerId: ada.customerId, channel: "email", type, email: "ada@x.org" } as const;
  await rig.run(async (work) => addSubscription(work, key, 9));
  await rig.hello(siteId, "1.0.0");
  await sendEvents(rig.deps);
  let release = 0;
  /** Whether a push is mailed. */
  const push = async (): Promise<boolean> => {
    const before = await rowsOf(rig);
    rig.later(1_000);
    await rig.hello(siteId, `1.${++release}.0`);
    await sendEvents(rig.deps);
    const after = await rowsOf(rig);
    if (after.length === before.length) return false;
    await until("it is sent", async () =>
      (await rowsOf(rig)).every(({ state }) => state === "sent"),
    );
    expect(mails.received.length).toBe(after.length);
    return true;
  };
  const at = (link: string): string => link.replace(base, `http://127.0.0.1:${port}`);
  const held = stack.move();
  return { rig, mails, push, at, key, [Symbol.asyncDispose]: async () => held.disposeAsync() };
}

async function rowsOf({ store }: Awaited<ReturnType<typeof openNoticeRig>>) {
  return store.selectFrom("outbox").select("state").execute();
}

test("one click in a mail program ends it for good; the link brings it back", async () => {
  await using scene = await open();
  const { mails, push, at } = scene;
  expect(await push()).toBe(true);
  const [mail] = mails.received;
  if (mail === undefined) throw new Error("no mail");
  const link = /<(.+)>/.exec(mails.header(mail, "List-Unsubscribe") ?? "")?.[1] ?? "";
  expect(link.startsWith(`${base}/mail/unsubscribe?token=`)).toBe(true);
  expect(mail.mail.text).toContain(link);

  // Scanners look at links.
  for (const method of ["GET", "HEAD"])
    expect((await fetch(at(link), { method })).status).toBe(200);
  expect(await push()).toBe(true);

  const clicked = await fetch(at(link), {
    method: "POST",
    body: new URLSearchParams({ "List-Unsubscribe": "One-Click" }),
  });
  expect(clicked.status).toBe(200);
  expect(await push()).toBe(false);
  const state = await scene.rig.run(async (work) => endSubscription(work, scene.key, false));
  expect(state).toBe("subscription_inactive");

  const page = await (await fetch(at(link))).text();
  expect(page).toContain("ada@x.org");
  const values = [...page.matchAll(/name="action" value="(\w+)"/g)].map((found) => found[1]);
  expect(values).toEqual(["resume"]);
  const form = { token: new URL(link).searchParams.get("token") ?? "" };
  const post = async (action: string) =>
    (
      await fetch(at(`${base}/mail/unsubscribe`), {
        method: "POST",
        body: new URLSearchParams({ ...form, action }),
      })
    ).text();
  await post("resume");
  expect(await push()).toBe(true);
  expect(await post("suspend")).toContain("2031-06-05");
  expect(await push()).toBe(false);
  scene.rig.later(30 * 86_400_000);
  expect(await push()).toBe(true);

  const audit = await scene.rig.store.selectFrom("audit").select(["action", "who"]).execute();
  expect(audit.map(({ action, who }) => `${who}: ${action}`)).toEqual([
    "ada@x.org: LINK end subscription",
    "ada@x.org: LINK resume subscription",
    "ada@x.org: LINK suspend subscription",
  ]);
});

test("a one-click post as multipart counts too", async () => {
  await using scene = await open();
  expect(await scene.push()).toBe(true);
  const [mail] = scene.mails.received;
  const link = /Unsubscribe: (\S+)/.exec(mail?.mail.text ?? "")?.[1] ?? "";
  const body = new FormData();
  body.set("List-Unsubscribe", "One-Click");
  expect((await fetch(scene.at(`${link}&utm_source=mail`))).status).toBe(200);
  expect((await fetch(scene.at(link), { method: "POST", body })).status).toBe(200);
  expect(await scene.push()).toBe(false);
});

test("a recovery link is good for an hour, and not for a moment longer", async () => {
  await using scene = await open();
  const { rig, mails, at } = scene;
  const ask = async () => {
    const count = mails.received.length;
    await rig.run(async (work) =>
      requestRecovery(work, { username: "ada", email: "ada@x.org" }, 100),
    );
    await mails.waitFor(count + 1);
    return /(\S+\/mail\/recover\S+)/.exec(mails.received.at(-1)?.mail.text ?? "")?.[1] ?? "";
  };
  const [first, second] = [await ask(), await ask()];
  rig.later(3_600_000 - 1);
  expect((await fetch(at(first))).status).toBe(200);
  // Mail programs and scanners add parameters to links.
  expect((await fetch(at(`${first}&utm_source=mail&format=xml`))).status).toBe(200);
  rig.later(1);
  expect((await fetch(at(first))).status).toBe(404);
  const third = await ask();
  const token = new URL(third).searchParams.get("token") ?? "";
  const post = async () =>
    (
      await fetch(at(`${base}/mail/recover`), {
        method: "POST",
        body: new URLSearchParams({ token }),
      })
    ).status;
  expect(await post()).toBe(200);
  expect(await post()).toBe(404);
  expect((await fetch(at(second))).status).toBe(404);
});
