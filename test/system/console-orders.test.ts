// The button that has an order of a certificate tried now, by clicking: central is asked at once, and what it refuses stands beside the button.

import type { Page } from "playwright-core";
import { expect, test, vi } from "vitest";
import { browserPath, openBrowser } from "../support/console-scene.ts";
import { Edge } from "../support/edge.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 240_000 });

const domain = "shop.example.com";
const soon = { timeout: 60_000 };

test.skipIf(browserPath === undefined)(
  "an order that waits is tried when the button is clicked, and not more often than its directory may be asked",
  async () => {
    await using edge = await Edge.prepare();
    await edge.startCentral();
    const { api } = edge;
    const trial = await api.post("/trial/", { username: "ada", email: "ada@example.com" });
    api.token = (trial.body as { readonly token: string }).token;
    const site = await api.post("/deployment-site/", { tags: "eu" });
    const { id } = site.body as { readonly id: number };
    await api.post("/domain/", { name: domain, deployment_site_id: id });
    // A name that leads nowhere, for ever (RFC 6761): the directory cannot be reached.
    const acme = { email: "ada@example.com", directory: "https://acme.invalid/directory" };
    const content = JSON.stringify({ domains: { [domain]: { tls: { acme } } } });
    await api.post(`/${domain}/devlove/v1/`, { schema: "devlove/1", content });
    const [version] = (await api.get(`/active-viewset/${domain}/`)).body as { id: number }[];
    await api.put(`/active-viewset/${domain}/${version?.id}/`, {});

    await using stack = new AsyncDisposableStack();
    const browser = await openBrowser();
    stack.defer(async () => browser.close());
    const page = await browser.newPage();
    await page.goto(`${api.origin}/`);
    await page.getByText("Token", { exact: true }).click();
    await page.locator("input[type=password]").fill(api.token);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor(soon);
    await page.goto(`${api.origin}/#/certificates`);
    await page.getByText(/acme\.invalid.*cannot be reached/).waitFor(soon);
    await until("it is tried", async () => (await clicked(page)) === 200, 120_000);
    await until("it is not tried yet", async () => (await clicked(page)) === 429, 60_000);
    await page
      .getByText(/its directory limits requests, and counts failures: it may be tried from/)
      .waitFor(soon);
    const audit = await api.get("/audit/");
    expect(JSON.stringify(audit.body)).toContain('"tryCertificateOrder"');
  },
);

async function clicked(page: Page): Promise<number> {
  const answer = page.waitForResponse(/\/certificate-orders\/\d+\/try\/$/, soon);
  await page
    .getByRole("button", { name: `Try to order the certificate of ${domain} now`, exact: true })
    .click(soon);
  return (await answer).status();
}
