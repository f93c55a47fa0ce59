// The console while central hangs, is away, or has only just come back: the page says so, and blames no host for it; and while a host is away.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  browserPath,
  consoleDomain as domain,
  ConsoleScene,
  openBrowser,
} from "../support/console-scene.ts";

vi.setConfig({ testTimeout: 240_000, hookTimeout: 300_000 });

const pictures = join(import.meta.dirname, "../../var/console-pictures");
const soon = { timeout: 60_000 };
/** Silence is noticed after 35 s, and told 5 s later. */
const toldWithinMs = 50_000;
/** Streams are tried again after 10 s at the latest. */
const backWithinMs = 25_000;

describe.skipIf(browserPath === undefined)("the console without central, or without a host", () => {
  const stack = new AsyncDisposableStack();
  let scene: ConsoleScene;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    mkdirSync(pictures, { recursive: true });
    scene = stack.use(await ConsoleScene.start());
    browser = await openBrowser();
    stack.defer(async () => browser.close());
    page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await page.goto(`${scene.edge.api.origin}/`);
    await page.getByText("Token", { exact: true }).click();
    await page.locator("input[type=password]").fill(scene.edge.api.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("● live").waitFor(soon);
  });
  afterAll(async () => stack.disposeAsync());

  const go = async (hash: string): Promise<void> => {
    await page.goto(`${scene.edge.api.origin}/#/${hash}`);
  };
  const told = (text: string | RegExp): Locator => page.getByRole("status").getByText(text);
  const picture = async (name: string): Promise<void> =>
    void (await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true }));

  test("a central that hangs is told within 50 s, on every page; a clear that it did not answer is not known to be taken", async () => {
    await go(`d/${domain}/clear`);
    await page.getByText("Nothing was cleared yet.").waitFor(soon);
    const { pid } = scene.edge.central;
    process.kill(pid, "SIGSTOP");
    const beganMs = performance.now();
    try {
      await page.getByLabel("URLs or paths, one a line").fill("/page/1");
      await page.getByText("Looking …").waitFor(soon);
      await page.getByRole("button", { name: "Clear", exact: true }).click();
      await told("Asking central to clear …").waitFor(soon);
      await told(/Central does not answer\. Nothing was heard since/).waitFor(soon);
      expect(performance.now() - beganMs).toBeLessThan(toldWithinMs);
      expect(await page.getByText("● not live").count()).toBe(1);
      await page.getByText("It is not known whether the clear was taken.").waitFor(soon);
      await picture("hanging-clear");
      await page.getByRole("link", { name: "Overview" }).click();
      await told(/what stands here may be old/).waitFor(soon);
    } finally {
      process.kill(pid, "SIGCONT");
    }
    const againMs = performance.now();
    await page.getByText("● live").waitFor(soon);
    await told(/what stands here may be old/).waitFor({ ...soon, state: "detached" });
    await page.getByRole("row", { name: /edge-two .*(?:connected|polling)/ }).waitFor(soon);
    expect(performance.now() - againMs).toBeLessThan(backWithinMs);
  });

  test("a central that stops, and one that has just started, blames no host", async () => {
    await go("");
    await page.getByText("● live").waitFor(soon);
    await page.getByText("Nothing needs attention.").waitFor(soon);
    // What was said for a moment counts as well.
    await page.evaluate(`{
      window.blamed = [];
      const look = () => {
        const [found] = /[^\\n]*away[^\\n]*/.exec(document.querySelector("main").innerText) ?? [];
        if (found !== undefined) window.blamed.push(found);
      };
      const watch = new MutationObserver(look);
      watch.observe(document.body, { subtree: true, childList: true, characterData: true });
    }`);
    await scene.edge.central[Symbol.asyncDispose]();
    await told(/Central cannot be reached/).waitFor(soon);
    expect(await page.getByRole("row", { name: /edge-.* not known/ }).count()).toBe(3);
    expect(await page.getByText("Nothing needs attention.").count()).toBe(0);
    await picture("stopped-overview");
    await scene.edge.startCentral();
    await page.getByText("● live").waitFor(soon);
    for (const { name } of scene.hosts)
      await page
        .getByRole("row", { name: new RegExp(`${name} .*(?:connected|polling)`) })
        .waitFor(soon);
    await told(/Central cannot be reached/).waitFor({ ...soon, state: "detached" });
    expect(await page.evaluate("window.blamed")).toEqual([]);
  });

  test("a host that is away is named where it matters, and comes first on a phone", async () => {
    await scene.edge.agent[Symbol.asyncDispose]();
    await go(`d/${domain}/clear`);
    await page.getByLabel("URLs or paths, one a line").fill("/page/2");
    await page.getByText("edge-test is away; it clears before it serves again.").waitFor(soon);
    await page.getByRole("button", { name: "Clear", exact: true }).click();
    const proof = page.getByRole("region", { name: "Proof", exact: true });
    await proof.getByText("proved by 2 of 3").waitFor(soon);
    await proof
      .getByRole("row", { name: /^edge-test pending away, .*; it clears before it serves again/ })
      .waitFor(soon);
    await picture("host-away-clear-1440");
    await page.setViewportSize({ width: 360, height: 800 });
    await picture("host-away-clear-360");
    await go("");
    const link = page.getByRole("row", { name: /^edge-test away, / }).getByText(/^away/);
    await link.waitFor(soon);
    const box = await link.boundingBox();
    expect((box?.x ?? 360) + (box?.width ?? 0)).toBeLessThan(360);
    await picture("host-away-overview-360");
  });
});
