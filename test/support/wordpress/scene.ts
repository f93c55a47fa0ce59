// A WordPress behind a whole edge, and its visitors, each with a canary in everything that he sends: one found in the page of somebody else is a leak.

import { expect } from "vitest";
import { browser, Edge, type Visit } from "../edge.ts";
import { until } from "../until.ts";
import { wordpressPlugin } from "./guide.ts";
import { canaryPlugin, startWordPress, type WordPress } from "./wordpress.ts";
import { freePorts } from "../free-ports.ts";

export const domain = "www.example.com";

export type Scene = AsyncDisposable & {
  readonly edge: Edge;
  readonly wordpress: WordPress;
  readonly host: string;
  /** Installs the plugin of the guide, with an API token of the customer. */
  readonly usePlugin: () => void;
};

/** `devlove` is what a guide says of the domain; its backend is the WordPress of the scene. */
export async function startScene(devlove: Readonly<Record<string, unknown>>): Promise<Scene> {
  await using stack = new AsyncDisposableStack();
  const edge = stack.use(await Edge.prepare());
  const host = `${domain}:${edge.ports.visitors}`;
  const [port = 0] = await freePorts(1);
  const wordpress = stack.use(await startWordPress({ port, siteUrl: `http://${host}` }));
  wordpress.addPlugin(canaryPlugin);
  await edge.startCentral();
  const trial = await edge.api.post("/trial/", { username: "shop", email: "shop@example.com" });
  edge.api.token = String(Object(trial.body)["token"]);
  const site = await edge.api.post("/deployment-site/", { tags: "eu" });
  const { id, name16, secret16 } = site.body as { id: number; name16: string; secret16: string };
  edge.writeAgentSettings({ name16, secret16 });
  await edge.startAgent();
  await edge.api.post("/domain/", { name: domain, deployment_site_id: id });
  await activate(edge, { ...devlove, backend: { urls: [wordpress.url] } });
  const owned = stack.move();
  return {
    edge,
    wordpress,
    host,
    usePlugin: () =>
      wordpress.addPlugin(wordpressPlugin(), {
        ACCEL_API_URL: `http://127.0.0.1:${edge.ports.central}`,
        ACCEL_API_TOKEN: edge.api.token,
        ACCEL_DOMAIN: domain,
      }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function activate(edge: Edge, settings: Readonly<Record<string, unknown>>): Promise<void> {
  const content = JSON.stringify({ domains: { [domain]: settings } });
  const posted = await edge.api.post(`/${domain}/devlove/first/`, { schema: "devlove/1", content });
  expect({ status: posted.status, body: posted.body }).toMatchObject({ status: 201 });
  const [{ id } = { id: 0 }] = (await edge.api.get(`/active-viewset/${domain}/`)).body as readonly {
    readonly id: number;
  }[];
  await edge.api.put(`/active-viewset/${domain}/${id}/`, {});
  await until("the activation is proved", async () => {
    const { body } = await edge.api.get(`/active-viewset/${domain}/${id}/`);
    return Object(body)["activation"] === "applied";
  });
}

const canary = /canary-([a-z0-9]+)-/g;

/** One browser: keeps the cookies that it is given, and looks for other visitors' canaries in everything that it gets. */
export class Visitor {
  readonly name: string;
  readonly #scene: Scene;
  readonly #cookies = new Map<string, string>();
  readonly leaks: string[];
  hits = 0;
  visits = 0;

  constructor(name: string, scene: Scene, leaks: string[]) {
    this.name = name;
    this.#scene = scene;
    this.leaks = leaks;
  }

  /** A cookie whose value is this visitor's alone. */
  carry(cookie: string): this {
    this.#cookies.set(cookie, `canary-${this.name}-${cookie}`);
    return this;
  }

  get cookies(): readonly string[] {
    return [...this.#cookies.keys()];
  }

  async get(path: string): Promise<Visit> {
    return this.#send(path, {});
  }

  async post(path: string, form: Readonly<Record<string, string>>): Promise<Visit> {
    return this.#send(path, {
      method: "POST",
      body: new URLSearchParams(form).toString(),
      headers: { "content-type": "application/x-www-form-urlencoded" },
    });
  }

  async sendJson(path: string, body: unknown, nonce: string): Promise<Visit> {
    return this.#send(path, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json", "x-wp-nonce": nonce },
    });
  }

  async #send(
    path: string,
    options: {
      readonly method?: string;
      readonly body?: string;
      readonly headers?: Readonly<Record<string, string>>;
    },
  ): Promise<Visit> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await this.#scene.edge.visit(path, {
      host: this.#scene.host,
      userAgent: browser,
      ...options,
      headers: {
        ...options.headers,
        ...(cookie === "" ? {} : { cookie }),
        // Passed on with every request: each visitor's own, and never to be seen in a page that is shared.
        referer: `http://${this.#scene.host}/?from=canary-${this.name}-referer`,
      },
    });
    for (const set of [answer.headers["set-cookie"] ?? []].flat()) this.#keep(set);
    const text = JSON.stringify(answer.headers) + answer.body.toString("latin1");
    for (const [found, name] of text.matchAll(canary))
      if (name !== this.name)
        this.leaks.push(`${this.name} got ${found} in ${options.method ?? "GET"} ${path}`);
    this.visits++;
    if (String(answer.headers["cache-status"]).startsWith("accel-agent; hit")) this.hits++;
    return answer;
  }

  #keep(set: string): void {
    const [pair = ""] = set.split(";", 1);
    const equals = pair.indexOf("=");
    const name = pair.slice(0, equals);
    const value = pair.slice(equals + 1);
    const isGone = /;\s*(?:max-age=0|expires=[^;]*19\d\d)/i.test(set) || value.trim() === "";
    if (isGone) this.#cookies.delete(name);
    else this.#cookies.set(name, value);
  }

  /** By the form, as a person does. */
  async logIn(user: string, password: string): Promise<void> {
    await this.get("/wp-login.php");
    const answer = await this.post("/wp-login.php", {
      log: user,
      pwd: password,
      testcookie: "1",
      redirect_to: "/wp-admin/",
    });
    expect(answer.status).toBe(302);
    expect(this.cookies.some((name) => name.startsWith("wordpress_logged_in_"))).toBe(true);
  }

  /** The nonce with which a page of the administration calls the REST API. */
  async nonce(): Promise<string> {
    const { status, body } = await this.get("/wp-admin/admin-ajax.php?action=rest-nonce");
    expect(status).toBe(200);
    return body.toString();
  }
}
