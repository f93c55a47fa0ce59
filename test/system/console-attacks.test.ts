// The console attacked in a real browser: markup in every field that a visitor or a customer's program controls, pages of other origins that frame it or send in its
// name, a session that is put under a visitor, and another customer's things in its addresses.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  browserPath,
  consoleDomain as domain,
  ConsoleScene,
  openBrowser,
} from "../support/console-scene.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 240_000, hookTimeout: 300_000 });

const soon = { timeout: 90_000 };
/** Runs if it ever becomes markup or script. */
const payloads = [
  "<img src=x onerror=pwned()>",
  '"><script>pwned()</script>',
  "<svg/onload=pwned()>",
  "javascript:pwned()",
  "'-pwned()-'",
];

describe.skipIf(browserPath === undefined)("attacks on the console", () => {
  const stack = new AsyncDisposableStack();
  let scene: ConsoleScene;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  const ran: string[] = [];

  beforeAll(async () => {
    scene = stack.use(await ConsoleScene.start());
    browser = await openBrowser();
    stack.defer(async () => browser.close());
    context = await browser.newContext();
    page = await context.newPage();
    await page.exposeFunction("pwned", () => void ran.push(page.url()));
    page.on("dialog", (dialog) => {
      ran.push(dialog.message());
      dialog.dismiss().catch(() => undefined);
    });
    await signIn(page, scene.edge.api.token);
  });
  afterAll(async () => stack.disposeAsync());

  const signIn = async (tab: Page, token: string): Promise<void> => {
    await tab.goto(`${scene.edge.api.origin}/`);
    await tab.getByText("Token", { exact: true }).click();
    await tab.locator("input[type=password]").fill(token);
    await tab.getByRole("button", { name: "Sign in" }).click();
    await tab.getByRole("heading", { name: "Overview" }).waitFor(soon);
  };
  const go = async (hash: string): Promise<void> => {
    await page.goto(`${scene.edge.api.origin}/#/${hash}`);
  };

  test("what visitors and customers write stays text, on every page", async () => {
    const { api } = scene.edge;
    const [host] = scene.hosts;
    if (host === undefined) throw new Error("no host");
    for (const [no, payload] of payloads.entries()) {
      const userAgent = `${payload} Hostilebot/${no}`;
      await scene.visit(host, `/${encodeURI(payload)}?q=${encodeURIComponent(payload)}`, {
        userAgent,
      });
      await scene.visit(host, `/page/${no}?${encodeURI(payload)}`);
      const name = payload.slice(0, 60);
      const made = [
        await api.post("/mark-as-bad-bot/198.51.100.1/", {
          attach_to_bot: name,
          attach_to_domain: domain,
        }),
        await api.post("/tokens/", { name, role: "read" }),
        await api.post(`/clear-accelerator-cache/${domain}/?wait=0`, {
          tags: [name.replaceAll(/\s/g, "")],
        }),
        await api.post("/monitor-notification-channel/email/", { monitor_uid: name }),
        await api.post("/bot-access-policy/", { deny_access: [{ domain, bot: name }] }),
      ];
      expect(made.map(({ status }) => status).filter((status) => status >= 300)).toEqual([]);
    }
    await api.put("/customer/1/", { name: payloads[0] });
    await until("its records are at central", async () => {
      const { body } = await api.get(`/requests/${domain}/?path=pwned`);
      return (body as { readonly requests: readonly unknown[] }).requests.length >= payloads.length;
    });
    for (const hash of [
      "",
      `d/${domain}/traffic`,
      `d/${domain}/clear`,
      `d/${domain}/bots`,
      `d/${domain}/versions`,
      `d/${domain}/logs?path=pwned`,
      "hosts",
      "certificates",
      "notifications",
      "access",
      "audit",
      `d/${encodeURIComponent(payloads[0] ?? "")}/traffic`,
      `d/${domain}/${encodeURIComponent(payloads[1] ?? "")}`,
      encodeURIComponent(payloads[2] ?? ""),
    ]) {
      await go(hash);
      await page.locator("h1").waitFor(soon);
      await page.waitForTimeout(1_500);
    }
    await go(`d/${domain}/logs?path=${encodeURIComponent("/%3Cimg")}`);
    await page
      .getByRole("button", { name: /^Open GET/ })
      .first()
      .click();
    await page.getByText("Hostilebot").first().waitFor(soon);
    expect(await page.locator("main").innerText()).toContain("onerror=pwned()");
    expect(ran).toEqual([]);
  });

  test("even markup that got in could not run: the policy forbids it, and text is never made markup", async () => {
    await go("");
    const outcome = await page.evaluate<string>(`
      (() => {
        try { document.body.innerHTML = "<b>no</b>"; return "made markup"; }
        catch (error) { return error.name; }
      })()`);
    expect(outcome).toBe("TypeError");
    const refused = await page.evaluate<string>(`
      new Promise((resolve) => {
        document.addEventListener("securitypolicyviolation", ({ violatedDirective }) => resolve(violatedDirective), { once: true });
        const script = document.createElement("script");
        try { script.textContent = "pwned()"; document.body.append(script); } catch (error) { resolve(error.name); }
        setTimeout(() => resolve("ran"), 5000);
      })`);
    expect(refused).toMatch(/script-src|require-trusted-types-for|TypeError/);
    expect(ran).toEqual([]);
  });

  test("a page of another origin can neither frame it nor send in its name", async () => {
    const { api } = scene.edge;
    await using attacker = await otherOrigin(api.origin);
    const before = JSON.stringify((await api.get("/tokens/")).body);
    const tab = await context.newPage();
    // The session's cookie is of this very host: a port is no border for cookies.
    expect(new URL(attacker.url).hostname).toBe(new URL(api.origin).hostname);
    await tab.goto(attacker.url);
    const told = await tab.evaluate<Readonly<Record<string, string>>>("attack()");
    expect(told).toEqual({ read: "failed", written: "failed", simple: "failed", stream: "failed" });
    await tab.getByRole("button").click(); // A form, which no script needs.
    await tab.waitForLoadState();
    expect(await tab.content()).toMatch(
      /session counts for requests of its own pages only|unsupported|must be/,
    );
    await tab.goto(`${attacker.url}framing`);
    await tab.waitForTimeout(2_000);
    const frames = tab.frames().filter((frame) => frame !== tab.mainFrame());
    for (const frame of frames) expect(await frame.content()).not.toContain('id="app"');
    await tab.close();
    expect(JSON.stringify((await api.get("/tokens/")).body)).toBe(before);
    expect(
      (await api.get(`/clear-accelerator-cache/${domain}/?since=2099-01-01T00:00:00Z`)).body,
    ).toEqual([]);
  });

  test("a session that somebody put into the browser is replaced by signing in, and ends with signing out", async () => {
    const { api } = scene.edge;
    const planted = (await api.post("/tokens/", { name: "planted", role: "read" })).body as {
      readonly token: string;
    };
    await using other = await browser.newContext();
    const tab = await other.newPage();
    await signIn(tab, planted.token);
    expect((await other.cookies()).map(({ value }) => value)).toEqual([planted.token]);
    await tab.getByRole("button", { name: "Sign out" }).click();
    await tab.getByRole("heading", { name: "Sign in" }).waitFor(soon);
    await signIn(tab, api.token);
    const cookies = await other.cookies();
    expect(cookies.map(({ value }) => value)).toEqual([api.token]);
    await tab.getByRole("button", { name: "Sign out" }).click();
    await tab.getByRole("heading", { name: "Sign in" }).waitFor(soon);
    expect(await other.cookies()).toEqual([]);
    await tab.reload();
    await tab.getByRole("heading", { name: "Sign in" }).waitFor(soon);
  });

  test("another customer's things are not found, however they are asked for", async () => {
    const { api } = scene.edge;
    const stranger = await api.post("/trial/", { username: "stranger" });
    await using other = await browser.newContext();
    const tab = await other.newPage();
    await signIn(tab, (stranger.body as { readonly token: string }).token);
    for (const part of ["traffic", "clear", "bots", "versions", "logs"]) {
      await tab.goto(`${api.origin}/#/d/${domain}/${part}`);
      await tab.locator("h1").waitFor(soon);
      await tab.waitForTimeout(1_000);
      const shown = await tab.locator("main").innerText();
      expect(shown).not.toMatch(/Hostilebot|onerror|edge-test|applied|proved/);
    }
    await tab.goto(`${api.origin}/#/`);
    await tab.getByText("There is no domain yet.").waitFor(soon);
  });

  test("a session of a token that may read offers no change, and central refuses each", async () => {
    const { api } = scene.edge;
    const made = (await api.post("/tokens/", { name: "reader", role: "read" })).body as {
      readonly token: string;
    };
    await using other = await browser.newContext();
    const tab = await other.newPage();
    await signIn(tab, made.token);
    await tab.goto(`${api.origin}/#/d/${domain}/clear`);
    await tab.getByText("This session may look and not clear").waitFor(soon);
    await tab.goto(`${api.origin}/#/d/${domain}/versions`);
    await tab.getByRole("heading", { name: /is active/ }).waitFor(soon);
    expect(await tab.getByRole("button", { name: /^Activate|^Store|^Roll back/ }).count()).toBe(0);
    const statuses = await tab.evaluate<readonly number[]>(`Promise.all([
      ["POST", "/clear-accelerator-cache/${domain}/", { everything: true }],
      ["POST", "/tokens/", { name: "more", role: "owner" }],
      ["PUT", "/active-viewset/${domain}/1/", {}],
      ["POST", "/mark-as-bad-bot/192.0.2.1/", { attach_to_bot: "x", attach_to_domain: "${domain}" }],
      ["DELETE", "/domain/${domain}/"],
    ].map(([method, path, body]) => fetch("/presentation-api/v1" + path, {
      method, headers: { "content-type": "application/json", "x-accel-console": "1" }, body: body && JSON.stringify(body),
    }).then(({ status }) => status)))`);
    expect(statuses).toEqual([403, 403, 403, 403, 403]);
  });
});

/** A server on another port, whose pages do what an attacker's would. */
async function otherOrigin(target: string) {
  const api = `${target}/presentation-api/v1`;
  const server = createServer(({ url }, response) => {
    response.writeHead(200, { "content-type": "text/html" });
    response.end(
      url === "/framing"
        ? `<!doctype html><iframe src="${target}/"></iframe><iframe src="${api}/session/"></iframe>`
        : `<!doctype html><form method="post" action="${api}/tokens/" enctype="text/plain">
             <input name='{"name":"stolen","role":"owner","x":"' value='"}'><button>Win</button></form>
           <script>
             const told = (promise, name) => promise.then(() => [name, "sent"], () => [name, "failed"]);
             const attack = async () => Object.fromEntries(await Promise.all([
               told(fetch("${api}/session/", { credentials: "include" }), "read"),
               told(fetch("${api}/tokens/", { method: "POST", credentials: "include",
                 headers: { "content-type": "application/json", "x-accel-console": "1" },
                 body: '{"name":"stolen","role":"owner"}' }), "written"),
               told(fetch("${api}/tokens/", { method: "POST", credentials: "include", mode: "no-cors",
                 body: '{"name":"stolen","role":"owner"}' }), "simple"),
               new Promise((resolve) => {
                 const stream = new EventSource("${api}/events/", { withCredentials: true });
                 stream.onopen = () => resolve(["stream", "sent"]);
                 stream.onerror = () => resolve(["stream", "failed"]);
               }),
             ]));
           </script>`,
    );
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const { port } = server.address() as AddressInfo; // It listens on TCP.
  return {
    url: `http://127.0.0.1:${port}/`,
    [Symbol.asyncDispose]: async () => {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}
