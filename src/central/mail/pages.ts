// The pages that links in mails lead to: a new token, and unsubscribing. Looking at one changes nothing,
// because mail scanners follow links; only the form's POST does.
//
// Each page holds all it needs, runs no script, sends no referrer, and is not cached.

import type { IncomingMessage, ServerResponse } from "node:http";
import { readBody } from "../../base/http-listener.ts";
import type { Log } from "../../base/log.ts";
import { escapeHtml } from "../../core/html-text.ts";
import { oneLine } from "./document.ts";
import { recoverPath, unsubscribePath } from "./links.ts";
import type { LinkAction, LinkedSubscription } from "../store/notices/subscriptions.ts";

/** All of these resolve with undefined for a link that is used up, expired or made up. */
export type LinkPorts = {
  recoverable(token: string): Promise<{ readonly username: string } | undefined>;
  recover(
    token: string,
  ): Promise<{ readonly username: string; readonly newToken: string } | undefined>;
  subscription(token: string): Promise<LinkedSubscription | undefined>;
  changeSubscription(token: string, action: LinkAction): Promise<LinkedSubscription | undefined>;
};

export type PagesOptions = {
  readonly ports: LinkPorts;
  /** Describes a type of message in words. */
  readonly describe: (type: string) => string;
  readonly log: Log;
};

type Page = { readonly status: number; readonly title: string; readonly body: string };

const bodyBytesMax = 8_192;
const bodyTimeoutMs = 20_000;
const tokenForm = /^[\w-]{20,100}$/;

/** Creates the pages. They never throw, and answer each request. */
export function createPages(
  options: PagesOptions,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    pageFor(options, request)
      .catch((error: unknown): Page => {
        options.log.error({ err: error }, "a page of a mail's link failed");
        return plainPage(
          500,
          "That did not work",
          "Something failed here. Please try again later.",
        );
      })
      .then((page) => send(response, page, request.method === "HEAD"))
      .catch((error: unknown) => {
        options.log.error({ err: error }, "a page of a mail's link could not be sent");
        response.destroy();
      });
  };
}

async function pageFor(options: PagesOptions, request: IncomingMessage): Promise<Page> {
  const [path = "", search = ""] = (request.url ?? "").split("?", 2);
  const isPost = request.method === "POST";
  if (!isPost && request.method !== "GET" && request.method !== "HEAD")
    return plainPage(405, "Not possible", "This page takes GET and POST.");
  const form = isPost ? await readForm(request) : new URLSearchParams();
  if (form === undefined) return plainPage(413, "Not possible", "That was too long.");
  // A one-click unsubscribe posts to the link itself, with the token in the query (RFC 8058).
  const token = form.get("token") ?? new URLSearchParams(search).get("token") ?? "";
  const known = tokenForm.test(token) ? token : undefined;
  switch (path.replace(/\/$/, "")) {
    case recoverPath:
      return recoverPage(options, known, isPost);
    case unsubscribePath:
      return unsubscribePage(options, known, isPost ? actionOf(form) : undefined);
    default:
      return plainPage(404, "Nothing here", "There is no such page.");
  }
}

/** Reads the form, whatever type a one-click client sends: a body that is no form has no fields. */
async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  const read = await readBody(request, bodyBytesMax, bodyTimeoutMs);
  if (!read.ok) return undefined;
  const type = request.headers["content-type"] ?? "";
  const text = read.body.toString("utf8");
  if (/^multipart\/form-data/i.test(type))
    return new URLSearchParams(/One-Click/.test(text) ? "List-Unsubscribe=One-Click" : "");
  return new URLSearchParams(text);
}

/**
 * Returns what the form asks for. A click in a mail program, which shows no page, ends the subscription for
 * good.
 */
function actionOf(form: URLSearchParams): LinkAction | undefined {
  const action = form.get("action");
  if (action === "suspend" || action === "end" || action === "resume") return action;
  return form.get("List-Unsubscribe") === "One-Click" ? "end" : undefined;
}

const overPage = plainPage(
  404,
  "This link is no longer valid",
  "It was used before, it is too old, or a part of it is missing. Ask for a new one.",
);

async function recoverPage(
  { ports, log }: PagesOptions,
  token: string | undefined,
  isPost: boolean,
): Promise<Page> {
  if (token === undefined) return overPage;
  if (!isPost) {
    const found = await ports.recoverable(token);
    if (found === undefined) return overPage;
    return {
      status: 200,
      title: "A new token",
      body: `<p>For the user <b>${shown(found.username)}</b>. The token is shown once, and all tokens that the user had before stop working.</p>
${form(recoverPath, token, [{ label: "Make a new token" }])}`,
    };
  }
  const done = await ports.recover(token);
  if (done === undefined) return overPage;
  log.info({ username: done.username }, "a token was recovered; those before are revoked");
  return {
    status: 200,
    title: "Your new token",
    body: `<p>For the user <b>${shown(done.username)}</b>. Copy it now: it is not shown again.</p>
<p><code>${shown(done.newToken)}</code></p>
<p class="quiet">Send it as <code>Authorization: Token &lt;API_TOKEN&gt;</code>, or <a href="/">sign in with it</a>.</p>`,
  };
}

async function unsubscribePage(
  { ports, describe }: PagesOptions,
  token: string | undefined,
  action: LinkAction | undefined,
): Promise<Page> {
  const found =
    token === undefined
      ? undefined
      : action === undefined
        ? await ports.subscription(token)
        : await ports.changeSubscription(token, action);
  if (token === undefined || found === undefined) return overPage;
  const { email, type, customer, state, until } = found;
  const what = `<p><b>${shown(email)}</b>, messages of <b>${shown(customer)}</b>:</p><p class="quiet">${shown(describe(type))}</p>`;
  const said = {
    active: "These messages are sent.",
    suspended: `No such messages are sent until ${shown((until ?? "").slice(0, 10))}; then they are again.`,
    ended: "No such messages are sent any more.",
  }[state];
  const end = { label: "Unsubscribe for good", action: "end" };
  const resume = { label: "Send them again", action: "resume" };
  const buttons = {
    active: [{ label: "Pause for 30 days", action: "suspend" }, end],
    suspended: [end, resume],
    ended: [resume],
  }[state];
  return {
    status: 200,
    title: action === undefined ? "Unsubscribe" : "Done",
    body: `${what}<p>${said}</p>${form(unsubscribePath, token, buttons)}`,
  };
}

type Button = { readonly label: string; readonly action?: string };

function form(path: string, token: string, buttons: readonly Button[]): string {
  const rendered = buttons.map(
    ({ label, action }) =>
      `<button${action === undefined ? "" : ` name="action" value="${shown(action)}"`}>${shown(label)}</button>`,
  );
  return `<form method="post" action="${path}"><input type="hidden" name="token" value="${shown(token)}">${rendered.join(" ")}</form>`;
}

function shown(text: string): string {
  return escapeHtml(oneLine(text));
}

function plainPage(status: number, title: string, text: string): Page {
  return { status, title, body: `<p>${escapeHtml(text)}</p>` };
}

const sheet = `
:root { color-scheme: light dark; }
body { margin: 0 auto; padding: 12vh 20px 40px; max-width: 34rem; font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; }
code { font-family: ui-monospace, monospace; font-size: 0.95em; overflow-wrap: anywhere; background: rgba(128, 128, 128, 0.15); padding: 0.15em 0.35em; border-radius: 4px; }
button { font: inherit; padding: 0.55em 1.1em; margin: 0 0.5em 0.5em 0; border-radius: 6px; border: 1px solid rgba(128, 128, 128, 0.6); cursor: pointer; }
button:first-of-type { background: #2f6fdf; border-color: #2f6fdf; color: #fff; }
.quiet { opacity: 0.75; }
`;

function send(response: ServerResponse, { status, title, body }: Page, isHead: boolean): void {
  const text = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escapeHtml(title)}</title>
<style>${sheet}</style>
<h1>${escapeHtml(title)}</h1>
${body}
</html>
`;
  response.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
    "content-security-policy":
      "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex",
    ...(status === 405 && { allow: "GET, HEAD, POST" }),
  });
  response.end(isHead ? undefined : text);
}
