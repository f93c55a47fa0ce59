// The console in a real browser, over a real central and three agents with traffic: its figures against what the agents recorded, and what is clicked against what
// visitors get.

import { existsSync, mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, BrowserContext, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { byteCount, count, percent, shortCount } from "../../src/console/words.ts";
import type { RequestRecord } from "../../src/wire/request-log.ts";
import { readAccessLog } from "../support/access-log.ts";
import { axe } from "../support/axe.ts";
import {
  browserPath,
  consoleDomain as domain,
  ConsoleScene,
  devloveOf,
  type Host,
  openBrowser,
  startShop,
} from "../support/console-scene.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 240_000, hookTimeout: 300_000 });

/** Where the last run's pictures are. */
const pictures = join(import.meta.dirname, "../../var/console-pictures");
/** What real visitors and bots asked; it lies beside the repository. Without it the test's own traffic has to do. */
const accessLog = join(
  import.meta.dirname,
  "../../../shared/data/logs/semicomplete_apache_combined_10k.log",
);
const logLines = 600;
/** Proofs, logs and numbers arrive within seconds; machines may be busy with other tests. */
const soon = { timeout: 60_000 };

describe.skipIf(browserPath === undefined)("the console", () => {
  const stack = new AsyncDisposableStack();
  let scene: ConsoleScene;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  const asked = new Set<string>();
  const complaints: string[] = [];

  beforeAll(async () => {
    scene = stack.use(await ConsoleScene.start());
    browser = await openBrowser();
    stack.defer(async () => browser.close());
    context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    page = await context.newPage();
    page.on("request", (request) => asked.add(new URL(request.url()).origin));
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => {
      // What is refused shows on the page; anything else that a browser complains of is a fault.
      if (message.type() === "error" && !/Failed to load resource/.test(message.text()))
        complaints.push(message.text());
    });
    await sendTraffic(scene);
  });
  afterAll(async () => stack.disposeAsync());

  const go = async (hash: string): Promise<void> => {
    await page.goto(`${scene.edge.api.origin}/#/${hash}`);
  };
  /** Waits for what should show; a failure tells what shows instead. */
  const shown = async (what: Locator): Promise<void> => {
    try {
      await what.waitFor(soon);
    } catch (error) {
      throw new Error(`the page shows: ${await page.locator("main").innerText()}`, {
        cause: error,
      });
    }
  };
  const tile = async (name: string): Promise<string> => {
    const text = await page.locator(".tiles > div", { hasText: name }).first().innerText();
    return text.replaceAll(/\s+/g, " ");
  };
  const region = (name: string | RegExp) => page.getByRole("region", { name, exact: true });

  test("a token signs in; a wrong one is told so", async () => {
    await page.goto(`${scene.edge.api.origin}/`);
    await page.getByLabel("Name", { exact: true }).and(page.locator(":focus")).waitFor(soon);
    await page.getByText("Token", { exact: true }).click();
    const field = page.locator("input[type=password]");
    await field.fill("no-such-token");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").waitFor();
    await field.fill(scene.edge.api.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.locator("main:focus").waitFor(soon);
    await page.getByText("● live").waitFor(soon);
    const [cookie] = await context.cookies();
    expect(cookie).toMatchObject({ name: "__Host-accel-session", httpOnly: true, secure: true });
  });

  test("the overview shows each host as it is, and the domain's day", async () => {
    await go("");
    for (const { name } of scene.hosts) {
      const row = page.locator("tr", { hasText: name });
      await row.getByText(/connected|polling/).waitFor(soon);
    }
    const records = await scene.everyRecord();
    const row = page.locator("tr", { has: page.getByRole("link", { name: domain }) });
    await row.getByText(shortCount(records.length), { exact: true }).waitFor(soon);
    const { bytes, saved, hits } = sumsOf(records);
    const text = (await row.innerText()).replaceAll(/\s+/g, " ");
    for (const part of [byteCount(bytes), byteCount(saved), percent(hits, records.length)])
      expect(text).toContain(part);
  });

  test("each figure of the traffic is what the agents recorded", async () => {
    await go(`d/${domain}/traffic`);
    const records = await scene.everyRecord();
    const { bytes, saved, hits, errors, refusals, blocked, asked: origins } = sumsOf(records);
    await until("all requests are counted", async () =>
      (await tile("Requests")).includes(` ${shortCount(records.length)} `),
    );
    expect(await tile("Hit ratio")).toContain(
      `${percent(hits, records.length)} ${count(hits)} from`,
    );
    expect(await tile("Sent")).toContain(byteCount(bytes));
    expect(await tile("Saved")).toContain(`${byteCount(saved)} ${percent(saved, bytes)}`);
    expect(await tile("Errors 5xx")).toContain(`5xx ${count(errors)} `);
    expect(await tile("Refusals 4xx")).toContain(`4xx ${count(refusals)} `);
    expect(await tile("Blocked")).toContain(`Blocked ${count(blocked)} `);
    expect(await tile("Origin")).toContain(`${count(origins)} asked`);
    // The plot's table has the same, hour by hour.
    await page.getByRole("button", { name: "Requests as a table" }).click();
    const cells = await page.locator(".figures td").allInnerTexts();
    const sum = cells.reduce(
      (all, text) => all + (text === "–" ? 0 : Number(text.replaceAll(",", ""))),
      0,
    );
    expect(sum).toBe(records.length);
    await page.getByRole("button", { name: "Requests as a plot" }).click();
    // Tops come a minute later.
    const [path, times] = mostFrequent(
      records.map(({ uri_path: uri }) => uri.split("?", 1)[0] ?? ""),
    );
    await region("Most asked paths")
      .getByRole("row", { name: new RegExp(`^${RegExp.escape(path)} (?:\\d+ to )?${times}$`) })
      .waitFor({ timeout: 150_000 });
  });

  test("a window is dragged, and the way back is the browser's", async () => {
    await go(`d/${domain}/traffic?span=1h`);
    const plot = page.locator(".plot .u-over").first();
    await plot.waitFor(soon);
    const box = await plot.boundingBox();
    if (box === null) throw new Error("the plot has no place");
    await page.mouse.move(box.x + box.width * 0.7, box.y + 50);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.95, box.y + 50, { steps: 5 });
    await page.mouse.up();
    await page.waitForURL(/since=\d+&until=\d+/);
    const query = new URLSearchParams(page.url().split("?")[1]);
    const length = Number(query.get("until")) - Number(query.get("since"));
    expect(length).toBeGreaterThan(700);
    expect(length).toBeLessThan(1_100);
    await page.getByRole("button", { name: "Wider" }).waitFor();
    await page.goBack();
    await page.waitForURL(/span=1h/);
  });

  test("a page is cleared by clicking: what would go, then the proof of all three hosts, then the new page", async () => {
    const path = "/page/1";
    for (const host of scene.hosts) await scene.visit(host, path);
    scene.shop.change(path);
    await go(`d/${domain}/clear`);
    await page.getByLabel("URLs or paths, one a line").fill(path);
    await shown(page.getByText("3 cached entries on 3 hosts would be cleared"));
    await page.getByRole("cell", { name: path, exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Clear", exact: true }).click();
    await region("Proof").getByText("proved by 3 of 3").waitFor(soon);
    for (const { name } of scene.hosts)
      await region("Proof")
        .getByRole("row", { name: new RegExp(`${name} proved 1 0 .* nothing found`) })
        .waitFor(soon);
    for (const host of scene.hosts) {
      const { body } = await scene.visit(host, path);
      expect(body.toString()).toContain(`${path} 1`);
    }
    await region("Clears so far")
      .getByRole("row", { name: /\/page\/1 proved by 3 of 3/ })
      .waitFor(soon);
  });

  test.each(["abc", "99999999999999", "2026-11-29T01:20:00Z"])(
    "a link with the time %s blanks nothing",
    async (since) => {
      await go(`d/${domain}/logs?since=${encodeURIComponent(since)}`);
      await page.getByRole("heading", { name: "Which requests" }).waitFor(soon);
      expect(await page.getByText(/cannot be shown/).count()).toBe(0);
    },
  );

  test("a wrong pattern is shown where it is wrong, and cannot be sent", async () => {
    await go(`d/${domain}/clear`);
    await page.getByText("Pattern", { exact: true }).click();
    await page.getByLabel("Full-text patterns, one a line").fill("path:shop AND (");
    await page.locator(".fault").waitFor(soon);
    expect(await page.locator(".fault").innerText()).toMatch(/^path:shop AND \(\n +↑$/);
    expect(await page.getByRole("button", { name: "Clear", exact: true }).isDisabled()).toBe(true);
  });

  test("an address is blocked and let in again by clicking", async () => {
    const visitor = { headers: { "x-forwarded-for": "203.0.113.9" } };
    await go(`d/${domain}/bots`);
    const list = region("Bad bots");
    await list.getByLabel("Bot", { exact: true }).fill("Unwelcome");
    await list.getByLabel("Addresses and ranges").fill("203.0.113.0/24, 198.51.100.7\nnonsense");
    await list.getByRole("button", { name: "Add", exact: true }).click();
    await list.getByText(/^nonsense: /).waitFor(soon);
    await list.getByText("203.0.113.0/24", { exact: true }).waitFor(soon);
    await statusAtAll(visitor, 403);
    await list.getByRole("button", { name: "Remove 203.0.113.0/24 from Unwelcome" }).click();
    await list.getByText("203.0.113.0/24", { exact: true }).waitFor({ ...soon, state: "detached" });
    await statusAtAll(visitor, 200);
  });

  test("a bot that nobody reviewed is let in with one click", async () => {
    await go(`d/${domain}/bots`);
    const bot = { userAgent: "Examplebot/2.1" };
    await statusAtAll(bot, 403);
    await until(
      "it is listed",
      async () => {
        await page.reload();
        await region("Bots that nobody reviewed").waitFor();
        return page.getByRole("button", { name: "Let in Examplebot" }).isVisible();
      },
      150_000,
    );
    await page.getByRole("button", { name: "Let in Examplebot" }).click();
    await region("What happens to whom")
      .getByRole("row", { name: /Examplebot let in/ })
      .waitFor(soon);
    await statusAtAll(bot, 200);
  });

  test("feed readers are let in where other bots are refused, and still are when others are let in and refused again", async () => {
    await go(`d/${domain}/bots`);
    const [reader, other] = [
      { userAgent: "Examplefeeds/1.0 (RSS reader)" },
      { userAgent: "Otherbot/1.0" },
    ];
    await statusAtAll(reader, 403);
    const table = region("What happens to whom");
    const others = table.getByLabel("Bots that nobody reviewed");
    await others.selectOption("refuse");
    const feeds = table.getByLabel("Unknown feed readers");
    await feeds.selectOption("let-in");
    await table.getByRole("row", { name: /an unknown feed reader let in/ }).waitFor(soon);
    await statusAtAll(reader, 200);
    await statusAtAll(other, 403);
    for (const say of ["let-in", "refuse"]) {
      await others.selectOption(say);
      await statusAtAll(other, say === "let-in" ? 200 : 403);
    }
    expect(await feeds.inputValue()).toBe("let-in");
    await statusAtAll(reader, 200);
  });

  test("a version is compared, activated on all hosts, and rolled back", async () => {
    await using second = await startShop("second");
    const content = devloveOf(second.url);
    await go(`d/${domain}/versions`);
    const editor = region(/^Devlove of/);
    const text = editor.getByLabel("The document (JSON)");
    await text.fill(content.slice(0, -1));
    await editor.getByRole("status").or(editor.getByRole("alert")).first().waitFor(soon);
    await text.fill(content);
    await editor.getByText("It is valid.").waitFor(soon);
    await editor.getByLabel("Store as a new version").fill("second");
    await editor.getByRole("button", { name: "Store as a new version" }).click();
    await page.getByRole("button", { name: "Compare second" }).click();
    await region("What second would change").getByText(`+`).first().waitFor(soon);
    expect(await region("What second would change").innerText()).toContain(second.url);
    await page.getByRole("button", { name: "Activate second" }).click();
    await page.getByRole("button", { name: "Serve second", exact: true }).click();
    await region("second is active").getByText("served", { exact: true }).waitFor(soon);
    await servedBy("second");
    await page.getByRole("button", { name: "Roll back to first" }).click();
    await page.getByRole("button", { name: "Back to first", exact: true }).click();
    await region("first is active").getByText("served", { exact: true }).waitFor(soon);
    await servedBy("first");
  });

  test("what is not cached leads to its requests, and the filter says so in words", async () => {
    await go(`d/${domain}/traffic?span=1d`);
    const passed = (await scene.everyRecord()).filter(({ cache }) => cache === "pass").length;
    await page.getByRole("link", { name: `not cached (pass) ${count(passed)}` }).click(soon);
    const filter = page.getByLabel("Cache", { exact: true });
    await filter.waitFor(soon);
    expect(await filter.inputValue()).toBe("pass");
    const rows = region("Requests").first().locator("tbody tr");
    await until("they are listed", async () => (await rows.count()) === Math.min(passed, 100));
    await filter.selectOption({ label: "hit" });
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    await page.waitForURL(/cache=hit&since=\d+&until=\d+/);
  });

  test("requests are filtered, opened, followed and saved", async () => {
    await go(`d/${domain}/logs?status=5xx`);
    const table = region("Requests").first();
    const failed = (await scene.everyRecord()).filter(
      ({ response_status: status }) => status >= 500,
    );
    await until(
      "all failed ones are there",
      async () => (await table.locator("tbody tr").count()) === failed.length,
    );
    await table
      .getByRole("button", { name: /^Open GET \/error/ })
      .first()
      .click();
    await region("One request").locator("dd", { hasText: "/error" }).waitFor(soon);
    expect(await region("One request").innerText()).toContain("/error");
    await go(`d/${domain}/logs?path=%2Ffollowed`);
    await page.getByText("None was found.").waitFor(soon);
    await page.getByLabel("Follow").check();
    for (const [no, host] of scene.hosts.entries()) await scene.visit(host, `/followed/${no}`);
    for (const no of [0, 1, 2])
      await table.getByRole("button", { name: `Open GET /followed/${no}` }).waitFor(soon);
    expect(await table.locator("tbody tr").count()).toBe(3);
    await go(`d/${domain}/logs?status=404`);
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export" }).click();
    const lines = (await readFile(await (await download).path(), "utf8")).trimEnd().split("\n");
    const missing = (await scene.everyRecord()).filter(
      ({ response_status: status }) => status === 404,
    );
    expect(lines.map((line) => (JSON.parse(line) as { path: string }).path).toSorted()).toEqual(
      missing.map(({ uri_path: path }) => path).toSorted(),
    );
  });

  const everyPage = [
    "",
    `d/${domain}/traffic`,
    `d/${domain}/clear`,
    `d/${domain}/bots`,
    `d/${domain}/versions`,
    `d/${domain}/logs`,
    "hosts",
    "certificates",
    "notifications",
    "access",
    "audit",
  ];

  test.each([360, 768, 1440])(
    "at %d px nothing is wider than the page, and axe finds no serious fault",
    async (width) => {
      mkdirSync(pictures, { recursive: true });
      const found: string[] = [];
      // Colours are the same at every width.
      for (const scheme of width === 1440 ? (["light", "dark"] as const) : (["light"] as const)) {
        await page.emulateMedia({ colorScheme: scheme });
        await page.setViewportSize({ width, height: 900 });
        for (const hash of everyPage) {
          await go(hash);
          await page.reload();
          await page.locator("h1").waitFor(soon);
          await until(
            "it is there",
            async () => (await page.getByText(/^(?:Loading|Looking) …$/).count()) === 0,
          );
          await page.waitForTimeout(300);
          const name = hash.replaceAll(/\W+/g, "-") || "overview";
          await page.screenshot({
            path: join(pictures, `${name}-${width}-${scheme}.png`),
            fullPage: true,
          });
          const wide = await page.evaluate<number>("document.documentElement.scrollWidth");
          if (wide > width) found.push(`${hash}: ${wide} px wide`);
          found.push(...(await axe(page)).map((fault) => `${hash} (${scheme}): ${fault}`));
        }
      }
      await page.emulateMedia({ colorScheme: "light" });
      await page.setViewportSize({ width: 1440, height: 900 });
      expect([...new Set(found)]).toEqual([]);
    },
  );

  test("the keyboard alone clears a page", async () => {
    await go(`d/${domain}/clear`);
    await page.getByRole("heading", { name: "Clear the cache" }).waitFor(soon);
    await page.getByLabel("URLs or paths, one a line").focus();
    await page.keyboard.type("/page/2");
    await page.keyboard.press("Tab"); // The box that makes a clear soft.
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.locator("h2:focus", { hasText: "Proof" }).waitFor(soon);
    await region("Proof").getByText("proved by 3 of 3").waitFor(soon);
    expect(await region("Proof").getByText("/page/2").count()).toBeGreaterThan(0);
  });

  test("a token that is revoked ends the console's session", async () => {
    const made = await scene.edge.api.post("/tokens/", { name: "short", role: "read" });
    const { id, token } = made.body as { readonly id: number; readonly token: string };
    await using other = await browser.newContext();
    const tab = await other.newPage();
    await tab.goto(`${scene.edge.api.origin}/`);
    await tab.getByText("Token", { exact: true }).click();
    await tab.locator("input[type=password]").fill(token);
    await tab.getByRole("button", { name: "Sign in" }).click();
    await tab.getByText("● live").waitFor(soon);
    const began = performance.now();
    await scene.edge.api.delete(`/tokens/${id}/`);
    await tab.getByRole("heading", { name: "Sign in" }).waitFor(soon);
    const tookMs = performance.now() - began;
    process.stderr.write(`the session ended after ${Math.round(tookMs)} ms\n`);
    expect(await tab.getByText("The session is over").count()).toBe(1);
  });

  test("nobody else was asked, and the browser had nothing to complain of", () => {
    expect([...asked]).toEqual([scene.edge.api.origin]);
    expect(complaints).toEqual([]);
  });

  async function statusAtAll(
    options: Parameters<ConsoleScene["visit"]>[2],
    wanted: number,
  ): Promise<void> {
    for (const host of scene.hosts)
      await until(`${host.name} answers ${wanted}`, async () => {
        const { status } = await scene.visit(host, "/page/1", options);
        return status === wanted;
      });
    const { status } = await scene.visit(firstOf(scene.hosts), "/page/1", options);
    expect(status).toBe(wanted);
  }

  async function servedBy(greeting: string): Promise<void> {
    for (const host of scene.hosts)
      await until(`${host.name} serves ${greeting}`, async () => {
        const { body } = await scene.visit(host, `/slow/${greeting}`);
        return body.toString().includes(`<title>${greeting}</title>`);
      });
    const { body } = await scene.visit(firstOf(scene.hosts), `/slow/${greeting}`);
    expect(body.toString()).toContain(greeting);
  }
});

function firstOf(hosts: readonly Host[]): Host {
  const [first] = hosts;
  if (first === undefined) throw new Error("no host");
  return first;
}

async function sendTraffic(scene: ConsoleScene): Promise<void> {
  const logged = existsSync(accessLog) ? readAccessLog(accessLog).slice(0, logLines) : [];
  for (const { line, method, target, ip, userAgent } of logged) {
    const host = scene.hosts[line % scene.hosts.length] ?? firstOf(scene.hosts);
    await scene.visit(host, target, { method, userAgent, headers: { "x-forwarded-for": ip } });
  }
  for (let no = 0; no < 240; no++) {
    const host = scene.hosts[no % scene.hosts.length] ?? firstOf(scene.hosts);
    const path =
      no % 40 === 7
        ? `/error/${no}`
        : no % 30 === 11
          ? `/missing/${no}`
          : no % 25 === 3
            ? `/slow/${no}`
            : `/page/${no % 9}?from=${no % 2}`;
    const userAgent = no % 20 === 5 ? { userAgent: "Examplebot/2.1" } : {};
    const address = { "x-forwarded-for": `192.0.2.${1 + (no % 12)}` };
    await scene.visit(host, path, { ...userAgent, headers: address });
  }
}

function sumsOf(records: readonly RequestRecord[]) {
  const isHit = ({ cache }: RequestRecord): boolean => cache === "hit" || cache === "stale";
  const sum = (some: readonly RequestRecord[]): number =>
    some.reduce((all, { bytes_sent: bytes }) => all + bytes, 0);
  const inClass = (first: number): number =>
    records.filter(({ response_status: status }) => Math.floor(status / 100) === first).length;
  return {
    bytes: sum(records),
    saved: sum(records.filter(isHit)),
    hits: records.filter(isHit).length,
    errors: inClass(5),
    refusals: inClass(4),
    blocked: records.filter(({ cache }) => cache === "blocked").length,
    asked: records.filter(({ backend_time: time }) => time > 0).length,
  };
}

function mostFrequent(keys: readonly string[]): readonly [key: string, times: number] {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  const [first = ["", 0] as const] = [...counts].toSorted(([, a], [, b]) => b - a);
  return first;
}
