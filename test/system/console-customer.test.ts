// A customer's whole way by clicking, from nothing: a site, a host that joins it, a domain with a version, its certificate, who gets alerts, tokens, the audit trail,
// a lost token, and the end of the domain. What was clicked is looked at where it takes effect: at the edge, in the chat, in the mailbox, with the API.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Locator, Page } from "playwright-core";
import { stringify } from "yaml";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type ChatHook, startChatHook } from "../support/chat-hook.ts";
import {
  browserPath,
  devloveOf,
  openBrowser,
  type Shop,
  startShop,
} from "../support/console-scene.ts";
import { Api, Edge } from "../support/edge.ts";
import { datacenter } from "../support/further-agent.ts";
import { freePorts } from "../support/free-ports.ts";
import { type MailServer, startMailServer } from "../support/mail-server.ts";
import { mainFile, node } from "../support/process.ts";
import { fingerprintOf } from "../support/sealed-site.ts";
import { startTextServer } from "../support/text-server.ts";
import { servedFor } from "../support/served-certificate.ts";
import { until } from "../support/until.ts";
import { makeAuthority } from "../support/x509.ts";

vi.setConfig({ testTimeout: 240_000, hookTimeout: 300_000 });

const [domain, subDomain] = ["shop.example.com", "img.shop.example.com"];
const owner = { username: "ada", email: "ada@example.com" };
/** Hosts, mails and proofs arrive within seconds; machines may be busy with other tests. */
const soon = { timeout: 60_000 };

describe.skipIf(browserPath === undefined)("a customer, by clicking alone", () => {
  const stack = new AsyncDisposableStack();
  let edge: Edge;
  let shop: Shop;
  let mails: MailServer;
  let hook: ChatHook;
  let browser: Browser;
  let page: Page;
  let tlsPort = 0;
  const authority = makeAuthority();

  beforeAll(async () => {
    [mails, hook] = [stack.use(await startMailServer()), stack.use(await startChatHook())];
    shop = stack.use(await startShop("first"));
    edge = stack.use(await Edge.prepare());
    edge.changeCentralSettings({
      mail: {
        server: `smtp://127.0.0.1:${mails.port}`,
        starttls: "never",
        from: "accel@central.example",
      },
      chat: { private_hooks: true },
      bots: { private_sources: true },
    });
    await edge.startCentral();
    const trial = await edge.api.post("/trial/", owner);
    edge.api.token = (trial.body as { readonly token: string }).token;
    browser = await openBrowser();
    stack.defer(async () => browser.close());
    page = await browser.newPage();
    await signInWith(page, edge.api.token);
  });
  afterAll(async () => stack.disposeAsync());

  const origin = (): string => edge.api.origin;
  const go = async (hash: string): Promise<void> => void (await page.goto(`${origin()}/#/${hash}`));
  const region = (name: string | RegExp) => page.getByRole("region", { name, exact: true });
  const click = async (name: string | RegExp, within: Page | Locator = page): Promise<void> =>
    within.getByRole("button", { name, exact: true }).click();
  const confirm = async (name: string): Promise<void> => click(name, page.getByRole("dialog"));

  async function signInWith(tab: Page, token: string): Promise<void> {
    await tab.goto(`${origin()}/`);
    await tab.getByText("Token", { exact: true }).click();
    await tab.locator("input[type=password]").fill(token);
    await click("Sign in", tab);
    await tab.getByRole("heading", { name: "Overview" }).waitFor(soon);
  }

  test("a site is made, and a host joins it with the code and the command that the page shows", async () => {
    await go("hosts");
    await region("Another deployment site").getByLabel("Tags").fill("eu");
    await click("Make the site");
    const panel = region(/^[0-9a-f]{16} \(eu\)$/);
    await panel.getByText("no host yet").waitFor(soon);
    await panel.getByText(/^Add a host to/).click();
    await click(/^Make a code for/, panel);
    await panel.getByText("Code for 1 host").waitFor(soon);
    const [command = "", code = ""] = await panel.locator("pre.secret").allInnerTexts();
    expect(command).toBe(`accel-agent join --central ${origin()}`);

    [tlsPort = 0] = await freePorts(1);
    const config = join(edge.dir, "agent.yaml");
    const { visitors, metrics } = edge.ports;
    const settings = {
      state_dir: join(edge.dir, "agent"),
      accelerator: {
        listen: `127.0.0.1:${visitors}`,
        tls_listen: `127.0.0.1:${tlsPort}`,
        workers: 1,
        trusted_proxies: ["127.0.0.1"],
      },
      metrics: { listen: `127.0.0.1:${metrics}` },
      edge: {
        server_name: "edge-one",
        edge_ip_address: "127.0.0.1",
        at_directory: edge.dir,
        datacenter,
      },
    };
    writeFileSync(config, stringify(settings));
    const words = command.split(" ").slice(1);
    const joining = spawn(node, [mainFile, "agent", ...words, "--no-start", "--config", config]);
    joining.stdin.end(`${code}\n`);
    expect(await once(joining, "close")).toEqual([0, null]);
    await edge.startAgent();
    await panel.getByRole("row", { name: /edge-one .*connected/ }).waitFor(soon);
    await until("the code is used up", async () => {
      const texts = await panel.innerText();
      return texts.includes("There is none.");
    });
  });

  test("a domain with a sub-domain is made, linked, described and activated; the edge serves both", async () => {
    await go("hosts");
    const made = region("Another domain");
    await made.getByLabel("Name").fill(domain);
    await made.getByText("One site", { exact: true }).click();
    await click("Make the domain");
    await region("Domains")
      .getByRole("row", { name: new RegExp(`^${domain} .*\\(eu\\)`) })
      .waitFor(soon);
    await click(`Change ${domain}`);
    await page.getByLabel(`Another sub-domain of ${domain}`).fill(subDomain);
    await click(`Add a sub-domain to ${domain}`);
    await page.getByText(`${subDomain} shares the views of ${domain}`).waitFor(soon);
    await made.getByRole("link", { name: /version of it is active/ }).click();
    const editor = region(/^Devlove/);
    await editor.getByLabel("The document (JSON)").fill(devloveOf(shop.url));
    await editor.getByText("It is valid.").waitFor(soon);
    await editor.getByLabel("Store as a new version").fill("first");
    await click("Store as a new version", editor);
    await click("Activate first");
    await confirm("Serve first");
    await region("first is active").getByText("served", { exact: true }).waitFor(soon);
    for (const host of [domain, subDomain]) {
      const { status, body } = await edge.visit("/page", { host });
      expect([status, body.toString()]).toEqual([200, expect.stringContaining("<title>first")]);
    }
  });

  test("why a request was refused is looked for by what a customer has of it", async () => {
    const ask = async (text: string): Promise<void> => {
      await go(`d/${domain}/bots`);
      const panel = region("Why was a request refused?");
      await panel.getByRole("textbox").fill(text);
      await click("Look", panel);
    };
    const newest = await until("a request is recorded", async () => {
      const { body } = await edge.api.get(`/requests/${domain}/?limit=1`);
      return (body as { readonly requests: readonly { readonly request_id: string }[] })
        .requests[0];
    });
    await ask(newest.request_id);
    await region("One request").locator("dd", { hasText: newest.request_id }).waitFor(soon);
    await ask("127.0.0.1");
    await page.getByText("None was found.").waitFor(soon);
    expect(page.url()).toMatch(/logs\?address=127\.0\.0\.1&verdict=refused$/);
    await ask("6B0C1F0E9D2A4C57");
    await page.getByText("accel-agent why 6b0c1f0e9d2a4c57").waitFor(soon);
  });

  test("a list is fetched from a URL and kept out at the edge; one that broke off is told, and taken when it is meant", async () => {
    const length = 300;
    let listed = length;
    await using published = await startTextServer(() =>
      Array.from({ length: listed }, (_, no) => `10.9.${no >> 8}.${no & 255}`).join("\n"),
    );
    await go(`d/${domain}/bots`);
    const panel = region("Lists from URLs").first();
    await panel.getByText("None is fetched.").waitFor(soon);
    await panel.getByLabel("Name of the bot").fill("Fetched");
    await panel.getByLabel("URL of the list").fill(published.url);
    await click("Fetch it", panel);
    const row = panel.getByRole("row", { name: /^Fetched / });
    await row.getByText("as published").waitFor(soon);
    await row.getByText(`${length} addresses and ranges`).waitFor(soon);
    const from = async (address: string): Promise<number> =>
      (await edge.visit("/page/1", { host: domain, headers: { "x-forwarded-for": address } }))
        .status;
    await until("it is kept out", async () => (await from("10.9.0.7")) === 403);
    expect(await from("10.8.0.7")).toBe(200);
    listed = 20;
    await click("Fetch the list of Fetched now", row);
    await row.getByText(/would be left with 20 of 300/).waitFor(soon);
    await row.getByText("refused", { exact: true }).waitFor(soon);
    expect(await from("10.9.1.7")).toBe(403);
    await click("Take the shorter list of Fetched", row);
    await confirm("Take the list as it is");
    await row.getByText("20 addresses and ranges").waitFor(soon);
    await until("it is let in", async () => (await from("10.9.1.7")) === 200);
    await click("Stop fetching the list of Fetched", row);
    await confirm("Stop fetching");
    await panel.getByText("None is fetched.").waitFor(soon);
    expect(await from("10.9.0.7")).toBe(403);
  });

  test("a certificate is uploaded and served; when it is removed, it is not", async () => {
    const leaf = authority.issue({ names: [domain] });
    await go("certificates");
    const panel = region(/\(eu\)$/);
    await panel.getByText(/^Upload a certificate for/).click();
    await panel
      .getByLabel(/^Certificate chain/)
      .first()
      .fill(leaf.chain);
    await click("Upload the certificate", panel);
    await panel.getByText("there is no private key yet").waitFor(soon);
    await panel
      .getByLabel(/^Private key/)
      .first()
      .fill(leaf.key);
    await click("Upload the certificate", panel);
    const row = panel.getByRole("row", { name: new RegExp(`^${domain} `) });
    await row.getByText("on the hosts").waitFor(soon);
    expect(await servedFor(tlsPort, domain, authority.root.pem)).toBe(fingerprintOf(leaf.pem));
    expect(await page.content()).not.toContain("PRIVATE KEY");
    await click(/^Remove the certificate for/, row);
    await confirm("Remove the certificate");
    await row.waitFor({ ...soon, state: "detached" });
    await until("it is served no more", async () =>
      servedFor(tlsPort, domain, authority.root.pem).then(
        () => false,
        () => true,
      ),
    );
    await expect(servedFor(tlsPort, domain, authority.root.pem)).rejects.toThrow();
  });

  test("a chat and an address get the test that is sent to them", async () => {
    await go("notifications");
    const chat = region("Chat channels of alerts").first();
    await chat.getByText(/^Make a channel/).click();
    await chat.getByLabel("Team").fill("ops");
    await chat.getByLabel("Channel").fill("#ops");
    await chat.getByLabel("Hook").fill(hook.url);
    await click("Make the channel", chat);
    await click("Send a test to ops", chat);
    await chat.getByText("1 message on the way").waitFor(soon);
    const [posted] = await hook.waitFor(1);
    expect(JSON.stringify(posted?.body)).toContain("test");

    await page.getByLabel("Address", { exact: true }).fill("ops@example.com");
    await page
      .getByRole("region", { name: "Alerts by mail" })
      .getByRole("button", { name: /^Subscribe/ })
      .first()
      .click();
    await page.getByText("ops@example.com gets these messages from now on.").waitFor(soon);
    const email = region("E-mail channels of alerts").first();
    await email.getByText(/^Make a channel/).click();
    await email.getByLabel("Team").fill("ops-mail");
    await click("Make the channel", email);
    await click("Send a test to ops-mail", email);
    await until("the mail is there", () =>
      mails.received.some(({ to }) => to.includes("ops@example.com")),
    );
    await click("Delete ops", chat);
    await confirm("Delete ops");
    await chat.getByText("There is none.").waitFor(soon);
    const { body } = await edge.api.get("/monitor-notification-channel/chat/");
    expect(body).toEqual([]);
  });

  test("a token that may clear one domain does that and no more, until it is revoked", async () => {
    await go("access");
    const made = region("Another token");
    await made.getByLabel("Name").fill("deploy");
    await made.getByText("Some domains", { exact: true }).click();
    await click("Make the token", made);
    await made.getByText("choose at least one domain").waitFor(soon);
    await made.getByLabel(domain, { exact: true }).check();
    await click("Make the token", made);
    await made.getByText(/^Token \d+, deploy$/).waitFor(soon);
    const other = new Api(origin());
    other.token = await made.locator("pre.secret").innerText();
    const clear = `/clear-accelerator-cache/${domain}/`;
    expect((await other.post(clear, { url_path_patterns: ["path:page"] })).status).toBe(200);
    expect((await other.post("/domain/", { name: "other.example.com" })).status).toBe(403);

    await using context = await browser.newContext();
    const tab = await context.newPage();
    await signInWith(tab, other.token);
    await tab.getByRole("link", { name: domain }).first().waitFor(soon);
    expect(await tab.getByRole("link", { name: "Audit" }).count()).toBe(0);
    await tab.goto(`${origin()}/#/d/${domain}/clear`);
    await tab.getByRole("button", { name: "Clear", exact: true }).waitFor(soon);
    await tab.goto(`${origin()}/#/hosts`);
    await tab.getByRole("link", { name: domain }).waitFor(soon);
    expect(await tab.getByRole("button", { name: `Change ${domain}` }).count()).toBe(0);

    await click(/^Revoke token \d+, deploy/, region("Tokens and sessions").first());
    await page
      .getByRole("dialog")
      .getByRole("button", { name: /^Revoke token/ })
      .click();
    await tab.getByRole("heading", { name: "Sign in" }).waitFor(soon);
    expect((await other.post(clear, { url_path_patterns: ["path:page"] })).status).toBe(401);
  });

  test("a password is set, and signs in", async () => {
    await go("access");
    const profile = region("Your profile");
    await profile.getByLabel("New password").fill("correct horse");
    await profile.getByLabel("The same once more").fill("correct house");
    await click("Change the password", profile);
    await profile.getByText("the two passwords are not the same").waitFor(soon);
    await profile.getByLabel("The same once more").fill("correct horse");
    await click("Change the password", profile);
    await profile.getByText("The password was changed.").waitFor(soon);
    await using context = await browser.newContext();
    const tab = await context.newPage();
    await tab.goto(`${origin()}/`);
    await tab.getByLabel("Name", { exact: true }).fill(owner.username);
    await tab.getByRole("textbox", { name: "Password" }).fill("correct horse");
    await click("Sign in", tab);
    await tab.getByRole("heading", { name: "Overview" }).waitFor(soon);
    expect(await tab.getByText(owner.username, { exact: true }).count()).toBe(1);
  });

  test("the audit trail says who did what was clicked here", async () => {
    await go("audit");
    const done = [
      "made a deployment site",
      "made a code for a host",
      "a host joined",
      "made a domain",
      "changed a domain",
      "stored a devlove",
      "activated a version",
      "uploaded a certificate",
      "removed a certificate",
      "made a chat channel",
      "sent a test to a chat channel",
      "deleted a chat channel",
      "subscribed an address to alerts",
      "made a token",
      "revoked a token",
      "cleared the cache",
      "changed a profile",
    ];
    const table = region("Changes").last();
    for (const words of done) await table.getByText(words, { exact: true }).first().waitFor(soon);
    await page.getByLabel("What was done").selectOption({ label: "cleared the cache" });
    await click("Filter");
    await until("one is left", async () => (await table.locator("tbody tr").count()) === 1);
    expect(await table.innerText()).toMatch(/ada\s+by token \d+\s+cleared the cache/);
    await click(/^Open: cleared the cache/, table);
    expect(await table.innerText()).toContain("path:page");
  });

  test("a site gets a new secret, and its host stays", async () => {
    await go("hosts");
    const panel = region(/^[0-9a-f]{16} \(eu\)$/);
    await panel.getByText(/^New secret for/).click();
    await click(/^Make a new secret for/, panel);
    await confirm("Make a new secret");
    await panel.getByText("It is shown only now.").waitFor(soon);
    const secret = await panel.locator("pre.secret").innerText();
    expect(secret).toMatch(/^[0-9a-f]{32}$/);
    await edge.agent.terminate();
    await panel.getByRole("row", { name: /edge-one .*away/ }).waitFor(soon);
    await edge.agent.restart();
    await panel.getByRole("row", { name: /edge-one .*connected/ }).waitFor(soon);
  });

  test("who has lost the token gets another by mail, and signs in with it", async () => {
    const before = edge.api.token;
    await click("Sign out");
    await page.getByText("Lost your token or password?").click();
    await page.getByLabel("Your user name").fill(owner.username);
    await page.getByLabel("Your e-mail address").fill("eve@example.com");
    await click("Send me the link");
    const told = page.getByText("a mail is on its way");
    await told.waitFor(soon);
    await page.getByLabel("Your e-mail address").fill(owner.email);
    await click("Send me the link");
    await told.waitFor(soon);
    const mail = await until("the mail is there", () =>
      mails.received.find(({ to }) => to.includes(owner.email)),
    );
    expect(mails.received.some(({ to }) => to.includes("eve@example.com"))).toBe(false);
    const [link = ""] = /http:\S+\/recover\?token=[^\s<>"]+/.exec(mail.mail.text ?? "") ?? [];
    await page.goto(link);
    await click("Make a new token");
    const token = await page.locator("code").first().innerText();
    await page.getByRole("link", { name: "sign in with it" }).click();
    await signInWith(page, token);
    expect((await edge.api.get("/domain/")).status).toBe(401);
    edge.api.token = token;
    expect((await edge.api.get("/domain/")).status).toBe(200);
    expect(token).not.toBe(before);
  });

  test("a domain is deleted once its name was typed, and no host serves it", async () => {
    await go("hosts");
    await click(`Change ${domain}`);
    await click(`Delete ${domain}`);
    const dialog = page.getByRole("dialog");
    const sure = dialog.getByRole("button", { name: `Delete ${domain}`, exact: true });
    await dialog.getByLabel(`Type ${domain} to go on`).fill(subDomain);
    expect(await sure.isDisabled()).toBe(true);
    await dialog.getByLabel(`Type ${domain} to go on`).fill(domain);
    await sure.click();
    await page.getByText("There is no domain yet.").waitFor(soon);
    await until("the edge serves it no more", async () => {
      const { body } = await edge.visit("/page", { host: domain });
      return !body.toString().includes("<title>first");
    });
    const { status } = await edge.visit("/page", { host: domain });
    expect(status).toBe(421);
  });
});
