// What is left of an order whose domain is gone, and of a certificate that somebody removes.

import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { acme, AcmeScene, domain } from "./acme-scene.ts";

const dayMs = 86_400_000;
const ordering = { [domain]: { tls: { acme } } };

let scene: AcmeScene;
beforeEach(async () => {
  scene = await AcmeScene.open();
});
afterEach(async () => scene[Symbol.asyncDispose]());

test("a domain that is removed takes its certificate, its warning and its figures with it", async () => {
  await scene.activate(ordering);
  await using _ = scene.start();
  await scene.untilIssued();
  await until("delivered", async () => (await scene.certificates()).length === 1);
  scene.looks = () => ({ kind: "elsewhere", reason: "it answers 404" });
  scene.forward(61 * dayMs);
  await until("warned", () => {
    scene.forward(10_000);
    return scene.health.list().length > 0;
  });
  const told = (await scene.api.journal(scene.siteId)).length;
  await scene.call("DELETE", `/domain/${domain}/`);
  await until("taken back", async () => (await scene.certificates()).length === 0);
  await until("settled", () => scene.health.list().length === 0);
  const figures = await scene.registry.metrics();
  expect(figures).toMatch(/^accel_central_certificate_orders\{state="failed"\} 0$/m);
  expect(figures).toMatch(/first_expiry_timestamp_seconds 0$/m);
  const entries = (await scene.api.journal(scene.siteId)).slice(told);
  expect(entries.at(-1)).toMatchObject({ kind: "certificate.changed" });
});

test("what was ordered for a domain that is removed while central is away is taken back", async () => {
  await scene.activate(ordering);
  {
    await using _ = scene.start();
    await scene.untilIssued();
    await until("delivered", async () => (await scene.certificates()).length === 1);
  }
  await scene.call("DELETE", `/domain/${domain}/`);
  await using _ = scene.start();
  await until("taken back", async () => (await scene.certificates()).length === 0);
  expect(await scene.orders()).toEqual([]);
});

test("an order that never came is in no figure when its domain is gone", async () => {
  scene.looks = () => ({ kind: "elsewhere", reason: "it answers 404" });
  await scene.activate(ordering);
  await using _ = scene.start();
  const proving = async (count: number): Promise<boolean> =>
    (await scene.registry.metrics()).includes(`orders{state="proving"} ${count}`);
  await until("counted", async () => {
    scene.forward(1_000);
    return proving(1);
  });
  await scene.call("DELETE", `/domain/${domain}/`);
  await until("counted no more", async () => proving(0));
  expect(await scene.orders()).toEqual([]);
});

test("an ordered certificate is removed when it is ordered no more, and not before", async () => {
  await scene.activate(ordering);
  await using _ = scene.start();
  await scene.untilIssued();
  await until("delivered", async () => (await scene.certificates()).length === 1);
  const sites = (await scene.call("GET", "/deployment-site/")) as readonly { name16: string }[];
  const path = `/upload/certificates/${sites[0]?.name16}/`;
  const [listed] = (await scene.call("GET", path)) as readonly { id: number }[];
  const remove = async () => scene.call("DELETE", `${path}${listed?.id}/`);
  await expect(remove()).rejects.toThrow(
    `the devlove of ${domain} orders this certificate, which would come back at once: take tls.acme out of it first`,
  );
  expect((await scene.certificates()).length).toBe(1);
  await scene.activate({ [domain]: {} });
  await until("ordered no more", async () => (await scene.orders()).length === 0);
  await remove();
  expect(await scene.certificates()).toEqual([]);
});

test("an order that rests takes no transaction", async () => {
  await scene.activate(ordering);
  await using _ = scene.start();
  await scene.untilIssued();
  await until("delivered", async () => (await scene.certificates()).length === 1);
  await new Promise((resolve) => setTimeout(resolve, 50));
  let changes = 0;
  scene.onChange = () => void changes++;
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(changes).toBe(0);
});
