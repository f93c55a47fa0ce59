// A spent day of image variants with real programs, from the visitor to the mailbox: two hosts hold variants back, one mail arrives, and the API sums both.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import type { ImageVariants } from "../../src/wire/customer/image-variants.ts";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Edge, visit, type Visit } from "../support/edge.ts";
import { startFurtherAgent, type Site } from "../support/further-agent.ts";
import { startMailServer } from "../support/mail-server.ts";
import { pictureOf } from "../support/pictures.ts";
import { until } from "../support/until.ts";

const type = "send_email_to_customer_about_domain_images_optimization_blocked_for_today";
/** A report each half minute, a look at what was reported each half minute. */
const toldWithinMs = 180_000;

async function startPictures(): Promise<AsyncDisposable & { readonly url: string }> {
  const pictures = await Promise.all([320, 400, 480].map((width) => pictureOf("jpeg", { width })));
  const server = createServer(({ url = "" }, response) => {
    const body = pictures[Number(/\d/.exec(url)?.[0] ?? 0)];
    const headers = {
      "content-type": "image/jpeg",
      "cache-control": "max-age=3600",
      etag: `"${url}"`,
    };
    response.writeHead(200, headers).end(body);
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const { port } = server.address() as AddressInfo; // Listening on TCP.
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => void server.close(),
  };
}

test("the number of a day is used up: one mail", { timeout: 600_000 }, async () => {
  await using mails = await startMailServer();
  await using origin = await startPictures();
  await using edge = await Edge.prepare();
  const server = `smtp://127.0.0.1:${mails.port}`;
  edge.changeCentralSettings({ mail: { server, starttls: "never", from: "accel@c.example" } });
  await edge.startCentral();
  const script = new CustomerScript(edge, origin.url, "pictures");
  await script.enrol();
  const { api } = edge;
  await edge.startAgent();
  for (const step of script.steps().slice(0, 1)) await step.run();
  const images = { optimize: true, formats: ["webp"], variants_per_day_max: 1 };
  const content = JSON.stringify({
    domains: { [domain]: { backend: { urls: [origin.url] }, images } },
  });
  await api.post(`/${domain}/devlove/first/`, { schema: "devlove/1", content });
  const [version] = (await api.get(`/active-viewset/${domain}/`)).body as [{ readonly id: number }];
  expect((await api.put(`/active-viewset/${domain}/${version.id}/`, {})).status).toBe(200);
  const subscription = { notification_type: type, email: "ops@example.com" };
  expect((await api.post("/notifications/email/subscribe/", subscription)).status).toBe(201);

  const far = (await api.post("/deployment-site/", { tags: "far" })).body as Site;
  await api.put(`/domain/${domain}/`, { name: domain, deployment_site_id: far.id });
  await using further = await startFurtherAgent(edge, far, "edge-far");
  const ports = [edge.ports.visitors, further.port];
  const ask = async (port: number, no: number): Promise<Visit> =>
    visit(port, `/${no}.jpg`, { host: domain, headers: { accept: "image/webp,*/*;q=0.1" } });
  for (const port of ports) {
    await until(
      "the site is served",
      async () => (await ask(port, 0)).status === 200,
      toldWithinMs,
    );
    await until(
      "one variant is sent",
      async () => (await ask(port, 0)).headers["content-type"] === "image/webp",
      toldWithinMs,
    );
    for (const no of [1, 2]) {
      await ask(port, no);
      expect((await ask(port, no)).headers["content-type"]).toBe("image/jpeg");
    }
  }
  const numbers = async (): Promise<ImageVariants> =>
    (await api.get(`/analytics/${domain}/images/`)).body as ImageVariants;
  await until(
    "both hosts have told",
    async () => (await numbers()).days[0]?.made === 2,
    toldWithinMs,
  );
  await mails.waitFor(1, toldWithinMs);
  const [mail] = mails.received;
  expect(mail?.to).toEqual(["ops@example.com"]);
  expect(mail?.mail.text).toContain(domain);
  expect(mail?.mail.text).toContain("images.variants_per_day_max");
  const { days } = await numbers();
  process.stdout.write(`${JSON.stringify(days)}\n`);
  expect(days[0]?.held_back).toBeGreaterThanOrEqual(2);
  expect(mails.received.length).toBe(1);
});
