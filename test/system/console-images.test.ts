// The variants of a domain's images in a real browser: nothing where there are none, then what hosts reported, today in words and each day in the plot's table.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { axe } from "../support/axe.ts";
import { browserPath, openBrowser } from "../support/console-scene.ts";
import { Edge } from "../support/edge.ts";
import { connectAgent, reportOf } from "../support/fake-agent.ts";

const domain = "shop.example.com";
const soon = { timeout: 60_000 };
const pictures = join(import.meta.dirname, "../../var/console-pictures");

test.skipIf(browserPath === undefined)(
  "the traffic page says how many variants were made and held back",
  { timeout: 240_000 },
  async () => {
    await using edge = await Edge.prepare();
    await edge.startCentral();
    const { api } = edge;
    const trial = await api.post("/trial/", { username: "ada" });
    api.token = (trial.body as { readonly token: string }).token;
    const site = (await api.post("/deployment-site/", { tags: "eu" })).body as {
      readonly id: number;
      readonly name16: string;
      readonly secret16: string;
    };
    await api.post("/domain/", { name: domain, deployment_site_id: site.id });

    await using browser = await openBrowser();
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await page.goto(`${api.origin}/`);
    await page.getByText("Token", { exact: true }).click();
    await page.locator("input[type=password]").fill(api.token);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor(soon);
    const open = async (): Promise<void> => {
      // Loaded once, and not again over answers that are on their way: a browser forgets the bodies of those.
      await page.goto("about:blank");
      await page.goto(`${api.origin}/#/d/${domain}/traffic`);
      await page.getByRole("region", { name: "Most asked paths" }).waitFor(soon);
    };
    const images = page.getByRole("region", { name: "Images", exact: true });
    const answered = page.waitForResponse(/\/analytics\/[^/]+\/images\/$/);
    await open();
    expect(await (await answered).json()).toMatchObject({ days: [] });
    expect(await images.count()).toBe(0);

    const agents = `${api.origin}/agent-api/v1`;
    const agent = await connectAgent(agents, site.name16, site.secret16);
    const backend = { requests: 0, errors: 0, latency_buckets: {}, reachable: true };
    const report = {
      ...reportOf("host-one", 0),
      domains: [{ domain, backend, unreviewed_bots: [], variants: { made: 20_000, blocked: 318 } }],
    };
    const told = await agent.call("/reports", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(report),
    });
    expect(told.status).toBe(204);
    await open();
    await images.getByText("20,000 variants were made").waitFor(soon);
    await images.getByText("at least 318 variants were held back").waitFor(soon);
    await images.getByRole("button", { name: /as a table$/ }).click();
    const cells = await images.locator("td").allInnerTexts();
    expect(cells).toEqual(expect.arrayContaining(["20,000", "318"]));
    mkdirSync(pictures, { recursive: true });
    await page.screenshot({ path: join(pictures, "images.png"), fullPage: true });
    expect(await axe(page)).toEqual([]);
  },
);
