// The status page in a real browser: on a phone and on a desk, light and dark, with little and with everything on it.

import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startAdminServer } from "../../../src/agent/admin/admin-server.ts";
import type { AgentStatus } from "../../../src/agent/admin/status.ts";
import { silentLog } from "../../../src/base/log.ts";
import { browserPath, openBrowser } from "../../support/console-scene.ts";
import { busyHour, GivenHour } from "./hours.ts";
import { statusOf } from "./status-of.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

/** Where the last run's pictures are. */
const pictures = join(import.meta.dirname, "../../../var/status-page-pictures");
const axeSource = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

const longName = `${"very-long-label-of-a-domain.".repeat(8)}example.com`;
const [plain] = statusOf({}).serving.domains;

const busyStatus: Partial<AgentStatus> = {
  ready: false,
  warnings: [
    {
      code: "central_unreachable",
      severity: "warning",
      text: `https://central.example.com/${"x".repeat(300)} cannot be reached: connect ECONNREFUSED`,
      since: "2026-01-01T12:40:00.000Z",
      not_before: null,
      hint: "Check the network, and that central runs.",
    },
    {
      code: "index_broken",
      severity: "error",
      text: "the index of the cache was damaged and has been set aside",
      since: "2026-01-01T12:59:30.000Z",
      not_before: "2026-01-01T12:59:30.000Z",
      hint: "Check the disk.",
    },
    {
      code: "secret_rotated",
      severity: "info",
      text: "a new secret16 is there",
      since: "2026-01-01T12:10:00.000Z",
      not_before: "2026-01-01T12:05:00.000Z",
      hint: "Nothing is to be done.",
    },
  ],
  serving: {
    ...statusOf({}).serving,
    domains:
      plain === undefined
        ? []
        : [plain, { ...plain, domain: longName, hosts: [longName, `www.${longName}`] }],
  },
  parts: {
    link: {
      state: "disconnected",
      since: "2026-01-01T12:40:00.000Z",
      central_url: `https://${longName}/`,
      lag: 4,
    },
    sets: [
      { name: "bad", ranges: 123_456, version: 7, bytes: 3_456_789 },
      { name: longName, ranges: 1, version: 1, bytes: 12 },
    ],
    cache: { is_open: true, bytes: 1_234_567_890, disk_max: 2 ** 31, entries: 98_765 },
    spool: { oldest_s: 600, lanes: { [`${"e29e589575fde970".repeat(4)}/1`]: "live: 3 spooled" } },
  },
};

const scenes = [
  ["new", statusOf({ warnings: [] }), new GivenHour()],
  ["started", statusOf({}), new GivenHour().take({}).take({ requests: 30, hits: 20 })],
  ["busy", statusOf(busyStatus), busyHour()],
] as const;

describe.skipIf(browserPath === undefined)("the status page", () => {
  const stack = new AsyncDisposableStack();
  let browser: Browser;
  let page: Page;
  const complaints: string[] = [];
  const asked: string[] = [];

  beforeAll(async () => {
    mkdirSync(pictures, { recursive: true });
    browser = await openBrowser();
    stack.defer(async () => browser.close());
    page = await browser.newPage();
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => complaints.push(message.text()));
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  });
  afterAll(async () => stack.disposeAsync());

  const serve = async (status: AgentStatus, given: GivenHour) =>
    startAdminServer({
      listen: { host: "127.0.0.1", port: 0 },
      nodeExporterUrl: undefined,
      metrics: async () => [],
      oldPages: false,
      status: async () => status,
      lastHour: given.hour,
      zone: () => "Europe/Berlin",
      now: () => new Date(given.wallMs),
      log: silentLog(),
    });

  test.each(scenes)(
    "%s: nothing is wider than the page, axe finds nothing, the policy is kept",
    async (name, status, given) => {
      await using admin = await serve(status, given);
      const found: string[] = [];
      for (const colorScheme of ["light", "dark"] as const)
        for (const width of [360, 1_200]) {
          await page.emulateMedia({ colorScheme });
          await page.setViewportSize({ width, height: 900 });
          await page.goto(`http://127.0.0.1:${admin.port}/`);
          const path = join(pictures, `${name}-${width}-${colorScheme}.png`);
          await page.screenshot({ path, fullPage: true });
          const wide = await page.evaluate<number>("document.documentElement.scrollWidth");
          if (wide > width) found.push(`${wide} px at ${width}`);
          found.push(...(await axe(page)).map((fault) => `${width} ${colorScheme}: ${fault}`));
        }
      expect([...new Set(found)]).toEqual([]);
      expect(complaints).toEqual([]);
      expect(new Set(asked)).toEqual(new Set(["/"]));
    },
  );

  test("the sheet is in force, and the lines are as many as the figures that are known", async () => {
    await using admin = await serve(statusOf({}), busyHour());
    await page.goto(`http://127.0.0.1:${admin.port}/`);
    expect(await page.locator("svg .run").count()).toBe(8);
    expect(
      await page.evaluate<string>("getComputedStyle(document.querySelector('svg .run')).fill"),
    ).toBe("none");
    const box = await page.locator("svg .run").first().boundingBox();
    expect(box?.height ?? 0).toBeGreaterThan(30);
  });

  test("no other site may frame it", async () => {
    await using admin = await serve(statusOf({}), new GivenHour());
    await page.goto("about:blank");
    await page.setContent(`<iframe src="http://127.0.0.1:${admin.port}/"></iframe>`);
    await vi.waitFor(() => expect(page.frames()[1]?.url()).toMatch(/^chrome-error:/), 10_000);
    expect(await page.frames()[1]?.getByText("accel-agent").count()).toBe(0);
    complaints.length = 0;
  });

  test("whoever asks for it sees the page load itself again", async () => {
    await using admin = await serve(statusOf({}), new GivenHour());
    await page.goto(`http://127.0.0.1:${admin.port}/`);
    await page.getByRole("link", { name: "Reload every 15 s" }).click();
    expect(new URL(page.url()).search).toBe("?reload=15");
    await page.waitForEvent("framenavigated", { timeout: 40_000 });
    await page.getByRole("link", { name: "Stop reloading" }).click();
    expect(new URL(page.url()).search).toBe("");
  });
});

type AxeResult = {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
};

/** Everything that axe calls a violation, as slight as it may be. */
async function axe(page: Page): Promise<readonly string[]> {
  await page.evaluate(await readFile(axeSource, "utf8"));
  const { violations } = await page.evaluate<AxeResult>("axe.run()");
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 120)}`);
}
